"""The emulator as a process of its own, from the other end of its sockets."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import zmq
from msgspec.msgpack import decode, encode  # noqa: TID251 (the wire is what is tested here)

from adapters.outbound.vllm_engine.emulator import EmulatorSettings
from adapters.outbound.vllm_engine.wire import (
    ABORT,
    ADD,
    ENGINE_CORE_DEAD,
    EngineAddresses,
    EngineCoreOutput,
    EngineCoreOutputs,
    EngineCoreRequest,
    EngineInit,
    EngineReady,
    EngineSampling,
    FinishCode,
    identity_of,
)
from tests.patience import PATIENCE_S

PLAY = """
import json, sys
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.vllm_engine.emulator import EmulatorSettings, run_emulator
sys.exit(run_emulator(EmulatorSettings(**json.loads(sys.argv[1])), DeterministicModel(1000).start))
"""
TIMEOUT_MS = int(PATIENCE_S * 1000)


@dataclass
class Frontend:
    """The other side: three bound sockets, and the emulator's process."""

    context: "zmq.Context[zmq.Socket[bytes]]"
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.door = self._bound(zmq.ROUTER)
        self.input = self._bound(zmq.ROUTER)
        self.output = self._bound(zmq.PULL)

    def _bound(self, kind: int) -> "zmq.Socket[bytes]":
        bound = self.context.socket(kind)
        bound.setsockopt(zmq.RCVTIMEO, TIMEOUT_MS)
        bound.bind("tcp://127.0.0.1:*")
        return bound

    def start(self, **settings: Any) -> "subprocess.Popen[bytes]":
        said = {"handshake_address": address(self.door), "step_ms": 1, "vocab_size": 1000, **settings}
        self.processes.append(subprocess.Popen([sys.executable, "-c", PLAY, json.dumps(said)]))
        return self.processes[-1]

    def greet(self, engines: int = 1) -> dict[bytes, EngineReady]:
        """The whole handshake: the identity of each engine, and what it says of itself."""
        statuses = []
        while len(statuses) < 2 * engines:
            identity, message = self.door.recv_multipart()
            status = decode(message)
            statuses.append((status.pop("status"), identity))
            assert status == {"local": False, "headless": True}
            if statuses[-1][0] == "HELLO":
                self.tell_addresses(identity)
        ready = dict(self.input.recv_multipart() for _ in range(engines))
        assert sorted(statuses) == sorted((status, identity) for identity in ready for status in ("HELLO", "READY"))
        return {identity: decode(message, type=EngineReady) for identity, message in ready.items()}

    def tell_addresses(self, identity: bytes) -> None:
        addresses = EngineAddresses(inputs=[address(self.input)], outputs=[address(self.output)])
        self.door.send_multipart([identity, encode(EngineInit(addresses=addresses))])

    def add(self, request_id: str, max_tokens: int = 5, engine: int = 0) -> None:
        request = EngineCoreRequest(request_id, [1, 2], None, EngineSampling(max_tokens=max_tokens), None, 0.0)
        self.input.send_multipart([identity_of(engine), ADD, encode(request)])

    def receive(self) -> EngineCoreOutputs[EngineCoreOutput]:
        return decode(self.output.recv_multipart()[0], type=EngineCoreOutputs[EngineCoreOutput])

    def finish_of(self, request_id: str) -> tuple[int, int | None]:
        """How many tokens come for a request, and how it ends."""
        tokens = 0
        while True:
            for output in self.receive().outputs:
                assert output.request_id == request_id
                tokens += len(output.new_token_ids)
                if output.finish_reason is not None:
                    return tokens, output.finish_reason


def address(bound: "zmq.Socket[bytes]") -> str:
    endpoint = bound.getsockopt(zmq.LAST_ENDPOINT)
    assert isinstance(endpoint, bytes)
    return endpoint.rstrip(b"\0").decode()


@pytest.fixture
def frontend() -> Iterator[Frontend]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    frontend = Frontend(context)
    try:
        yield frontend
    finally:
        context.destroy(linger=0)
        for process in frontend.processes:
            process.kill()
            process.wait()


def test_an_engine_introduces_itself_answers_and_leaves_on_sigterm(frontend: Frontend) -> None:
    process = frontend.start(max_model_len=77, vllm_version="9.9.9")
    ((identity, ready),) = frontend.greet().items()
    assert identity == b"\0\0"
    assert (ready.max_model_len, ready.vllm_version) == (77, "9.9.9")
    frontend.add("r", max_tokens=5)
    assert frontend.finish_of("r") == (5, FinishCode.LENGTH)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_engines_of_one_process_are_apart(frontend: Frontend) -> None:
    frontend.start(engine_count=2)
    assert set(frontend.greet(engines=2)) == {b"\0\0", b"\1\0"}
    frontend.add("r", engine=1)
    assert frontend.receive().engine_index == 1


def test_a_signal_ends_what_runs_with_an_abort(frontend: Frontend) -> None:
    process = frontend.start()
    frontend.greet()
    frontend.add("r", max_tokens=100_000)
    frontend.receive()
    process.send_signal(signal.SIGINT)
    assert frontend.finish_of("r")[1] == FinishCode.ABORT
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("settings", [{}, {"ready_delay_s": 600}])
def test_a_signal_ends_the_handshake(frontend: Frontend, settings: dict[str, Any]) -> None:
    process = frontend.start(**settings)
    identity, _ = frontend.door.recv_multipart()
    if settings:
        frontend.tell_addresses(identity)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_an_aborted_request_gives_room_for_the_next(frontend: Frontend) -> None:
    frontend.start()
    frontend.greet()
    frontend.add("gone", max_tokens=100_000)
    frontend.receive()
    frontend.input.send_multipart([identity_of(0), ABORT, encode(["gone"])])
    frontend.add("next", max_tokens=1)
    while (output := frontend.receive().outputs[-1]).request_id == "gone":
        assert output.finish_reason is None
    assert output.request_id == "next"


def test_dead_says_so_and_ends(frontend: Frontend) -> None:
    process = frontend.start(fail="dead", fail_after=3)
    frontend.greet()
    frontend.add("r", max_tokens=100)
    for _ in range(3):
        assert len(frontend.receive().outputs) == 1
    assert frontend.output.recv_multipart() == [ENGINE_CORE_DEAD]
    assert process.wait(PATIENCE_S) == 1


def test_exit_leaves_without_a_word(frontend: Frontend) -> None:
    process = frontend.start(fail="exit")
    frontend.greet()
    frontend.add("r")
    assert process.wait(PATIENCE_S) == 1
    assert not frontend.output.poll(0)


def test_disconnect_leaves_the_process(frontend: Frontend) -> None:
    process = frontend.start(fail="disconnect")
    monitor = frontend.input.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    frontend.greet()
    frontend.add("r")
    assert monitor.poll(TIMEOUT_MS)
    assert process.poll() is None
    monitor.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


def test_garbage_is_sent_once(frontend: Frontend) -> None:
    frontend.start(fail="garbage", fail_after=1)
    frontend.greet()
    frontend.add("r", max_tokens=3)
    messages = [frontend.output.recv_multipart()[0] for _ in range(4)]
    assert [message[:1] == b"\xc1" for message in messages] == [False, True, False, False]


def test_stall_gives_no_more_but_stays_connected(frontend: Frontend) -> None:
    process = frontend.start(fail="stall", fail_after=2)
    monitor = frontend.input.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    frontend.greet()
    frontend.add("r", max_tokens=100)
    for _ in range(2):
        frontend.receive()
    assert not frontend.output.poll(100)
    assert not monitor.poll(0)
    assert process.poll() is None
    monitor.close()


def test_an_unknown_failure_is_refused() -> None:
    with pytest.raises(ValueError, match="explode"):
        EmulatorSettings(handshake_address="tcp://127.0.0.1:1", fail="explode")
