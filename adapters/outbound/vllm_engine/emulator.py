"""An engine core without a model, for any frontend that speaks its protocol.

One process plays one or more engines and steps them together, on an absolute schedule. A frontend that goes away
leaves the engines waiting: as with real headless ones, only a signal ends them.
"""

import contextlib
import logging
import math
import os
import signal
import socket
import time
from collections.abc import Sequence
from typing import Final, NoReturn
from urllib.parse import urlsplit

import zmq
from msgspec import Struct

from adapters.outbound.vllm_engine.emulated_engine import (
    INVALID,
    PAUSED,
    DraftMetrics,
    EmulatedEngine,
    Faults,
    Generate,
    Observe,
)
from adapters.outbound.vllm_engine.emulated_link import LINGER_MS, Context, EngineLink, Socket, received
from adapters.outbound.vllm_engine.transport import TransportFailure
from adapters.outbound.vllm_engine.wire import ENGINE_CORE_DEAD, EngineReady, FinishCode

FAILURES: Final = {
    "dead": "the process says ENGINE_CORE_DEAD after `fail_after` tokens and ends with status 1",
    "exit": "the process is gone after `fail_after` tokens, without a word",
    "disconnect": "all connections are closed after `fail_after` tokens; the process stays",
    "stall": "nothing more is read or generated after `fail_after` tokens; connections and process stay",
    "garbage": "a message that is no msgpack is sent once after `fail_after` tokens",
    "error": "every request ends in an error after `fail_after` tokens of its own",
    "abort": "every request is aborted by the engine after `fail_after` tokens of its own",
    "refuse": "every request is refused as invalid; before 0.33, it ends in an error",
    "paused": "every request is refused as the engine is paused; before 0.33, it ends in an error",
}
"""What an emulator can be told to do wrong. After 0 tokens means: at the first request, before any token."""

MAX_LORAS: Final = 8
"""What is said to fit into one batch. Nothing depends on it here."""

GARBAGE: Final = b"\xc1 is no msgpack"

log = logging.getLogger(__name__)


class EmulatorSettings(Struct, frozen=True, kw_only=True):
    """How to play an engine core."""

    handshake_address: str
    """Where the frontend listens, such as `tcp://127.0.0.1:29550`."""
    engine_count: int = 1
    step_ms: float = 10.0
    """Time of one engine step; 0 is as fast as it goes."""
    tokens_per_step: int = 1
    vocab_size: int = 49152
    max_model_len: int = 8192
    vllm_version: str = "0.32.0"
    """What the engines say they are. Outputs have 0.32's shape for 0.32, else 0.33's."""
    fail: str | None = None
    """One of FAILURES."""
    fail_after: int = 0
    ready_delay_s: float = 0.0
    """How long loading the model takes."""
    per_request_spec_decode_metrics: DraftMetrics = "none"
    """How much is told of drafts, which the further tokens of each step are taken for."""

    def __post_init__(self) -> None:
        if self.fail is not None and self.fail not in FAILURES:
            raise ValueError(f"--fail: {self.fail!r} is none of the failures {', '.join(FAILURES)}.")
        if not _is_address(self.handshake_address):
            raise ValueError(
                f"--handshake-address: {self.handshake_address!r} is no address such as tcp://127.0.0.1:29550."
            )


def run_emulator(settings: EmulatorSettings, generate: Generate) -> int:
    """Play until SIGTERM or SIGINT, or until the failure that was asked for; gives the status to exit with."""
    emulator = EngineCoreEmulator(settings, emulated_engines(settings, generate))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: emulator.stop())
    return emulator.run()


def emulated_engines(
    settings: EmulatorSettings, generate: Generate, observe: Observe | None = None
) -> list[EmulatedEngine]:
    """What happens to requests is logged, unless somebody else is to `observe` it."""
    return [
        EmulatedEngine(
            index,
            generate,
            observe or (_log_event if settings.engine_count == 1 else _log_event_of(index)),
            vocab_size=settings.vocab_size,
            tokens_per_step=settings.tokens_per_step,
            is_032=settings.vllm_version.startswith("0.32"),
            faults=_faults(settings),
            draft_metrics=settings.per_request_spec_decode_metrics,
        )
        for index in range(settings.engine_count)
    ]


def _log_event(event: str, request_id: str) -> None:
    log.info("%s %s", event, request_id)


def _log_event_of(index: int) -> Observe:
    """For one engine among several."""
    return lambda event, request_id: log.info("%s %s by engine %d", event, request_id, index)


class _Stopped(Exception):
    """Somebody asked to stop."""


class _Failed(Exception):
    """The engines died, as was asked for."""


class EngineCoreEmulator:
    """Plays engines in the thread that calls `run`."""

    def __init__(self, settings: EmulatorSettings, engines: Sequence[EmulatedEngine]) -> None:
        self._settings = settings
        self._failure = settings.fail if settings.fail in ("dead", "exit", "disconnect", "stall", "garbage") else None
        self._stop_requested, self._stop = socket.socketpair()
        self._poller = zmq.Poller()
        self._poller.register(self._stop_requested.fileno(), zmq.POLLIN)
        self._links = [EngineLink(engine) for engine in engines]

    def stop(self) -> None:
        """End `run`. May be called from a signal handler or from another thread, and again."""
        with contextlib.suppress(OSError):  # it ended already
            self._stop.send(b"\0")

    def run(self) -> int:
        """Connect, and play until stopped or failed; gives the status to exit with. To be called once."""
        context: Context = zmq.Context()
        try:
            self._connect(context)
            self._serve()
        except _Stopped:
            for link in self._links:
                if link.inputs:
                    link.send(link.engine.shut_down(time.monotonic()))
            return 0
        except _Failed:
            return 1
        finally:
            is_connected = any(link.inputs for link in self._links)
            context.destroy(linger=LINGER_MS if is_connected else 0)
            self._stop_requested.close()
            self._stop.close()

    def _connect(self, context: Context) -> None:
        """The handshake of each engine: hello, addresses, model loaded, ready."""
        address = self._settings.handshake_address
        try:
            waiting = {link.say_hello(context, address): link for link in self._links}
        except zmq.ZMQError as error:
            raise TransportFailure(f"Cannot connect to {address}: {zmq.strerror(error.errno or 0)}.") from error
        for handshake in waiting:
            self._poller.register(handshake, zmq.POLLIN)
        log.info("waiting for a frontend at %s", address)
        loaded_at: dict[Socket, float] = {}
        while waiting:
            readable = self._poll(min(loaded_at.values(), default=math.inf) - time.monotonic())
            now = time.monotonic()
            for handshake, link in list(waiting.items()):
                if handshake in readable:
                    self._poller.unregister(handshake)
                    log.info("loading takes %g s", self._settings.ready_delay_s)
                    loaded_at[handshake] = now + self._settings.ready_delay_s
                if now >= loaded_at.get(handshake, math.inf):
                    del waiting[handshake], loaded_at[handshake]
                    link.say_ready(context, handshake, self._ready(link.engine.index))
        log.info("ready for its requests")
        for link in self._links:
            for source in link.inputs:
                self._poller.register(source, zmq.POLLIN)

    def _ready(self, index: int) -> EngineReady:
        return EngineReady(
            max_model_len=self._settings.max_model_len,
            vllm_version=self._settings.vllm_version,
            num_gpu_blocks=65536,
            data_parallel_rank=index,
            max_num_seqs=1024,
            max_num_batched_tokens=8192,
            instance_id="emulated",
            supports_lora=True,
            max_loras=MAX_LORAS,
        )

    def _serve(self) -> NoReturn:
        """Take what comes, and step while there is work."""
        step_s = self._settings.step_ms / 1000
        due = math.inf
        while True:
            busy = any(link.engine.has_work for link in self._links)
            now = time.monotonic()
            due = min(due, now + step_s) if busy else math.inf
            readable = self._poll(due - now)
            now = time.monotonic()
            for link in self._links:
                for source in link.inputs:
                    if source in readable:
                        for kind, body in received(source):
                            link.send(link.engine.receive(kind, body, now))
            if now >= due:
                if self._failure is not None and self._tokens >= self._settings.fail_after:
                    self._fail()
                for link in self._links:
                    link.send(link.engine.step(now))
                due = max(due + step_s, now)

    @property
    def _tokens(self) -> int:
        return sum(link.engine.tokens for link in self._links)

    def _fail(self) -> None:
        """Bring about the failure that was asked for."""
        failure, self._failure = self._failure, None
        match failure:
            case "exit":
                os._exit(1)
            case "dead":
                for link in self._links:
                    link.broadcast(ENGINE_CORE_DEAD)
                raise _Failed
            case "garbage":
                for link in self._links:
                    link.broadcast(GARBAGE)
            case _:
                for link in self._links:
                    for source in link.inputs:
                        self._poller.unregister(source)
                    if failure == "disconnect":
                        link.close()
                while True:  # until stopped
                    self._poll()

    def _poll(self, timeout_s: float = math.inf) -> set[object]:
        """Sockets with something to read. Raises _Stopped."""
        # In whole milliseconds, rounded up: the schedule is absolute, so being late does not add up, while a wait
        # that is too short would be a busy one.
        timeout_ms = None if math.isinf(timeout_s) else max(0, math.ceil(timeout_s * 1000))
        readable: set[object] = {source for source, _ in self._poller.poll(timeout_ms)}
        if self._stop_requested.fileno() in readable:
            raise _Stopped
        return readable


def _is_address(text: str) -> bool:
    url = urlsplit(text)
    try:
        return bool(url.hostname and url.port) if url.scheme == "tcp" else url.scheme == "ipc"
    except ValueError:  # the port is none
        return False


def _faults(settings: EmulatorSettings) -> Faults:
    match settings.fail:
        case "error":
            return Faults(ends_in=FinishCode.ERROR, ends_after=settings.fail_after)
        case "abort":
            return Faults(ends_in=FinishCode.ABORT, ends_after=settings.fail_after)
        case "refuse":
            return Faults(refuses_with=INVALID)
        case "paused":
            return Faults(refuses_with=PAUSED)
    return Faults()
