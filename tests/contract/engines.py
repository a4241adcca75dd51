"""Every implementation of the engine port, opened alike."""

import asyncio
import socket
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from threading import Thread
from typing import Protocol

from adapters.outbound.llamacpp_engine.engine import LlamaCppEngine, open_llamacpp
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from adapters.outbound.mock_engine.scripted import Script, ScriptedEngine
from adapters.outbound.vllm_engine.connect import connect_external
from adapters.outbound.vllm_engine.emulator import EmulatorSettings, EngineCoreEmulator, emulated_engines
from application.ports.engine import EngineCore
from domain.generation import GenerationRequest
from domain.sampling import SamplingParams
from tests.fakes.gguf import weights
from tests.patience import PATIENCE_S

MODEL = DeterministicModel(261, byte_vocabulary=True)

ENDLESS = GenerationRequest(
    request_id="endless", prompt_token_ids=[1, 2, 3], sampling=SamplingParams(max_tokens=8000, ignore_eos=True)
)


class EngineUnderTest(Protocol):
    """An engine, and what it can be asked beside the port."""

    engine: EngineCore
    vocab_size: int = MODEL.vocab_size

    @property
    @abstractmethod
    def aborts(self) -> int:
        """How many reached the engine, whether or not it knew the request."""


class Scripted(EngineUnderTest):
    def __init__(self, engine: ScriptedEngine) -> None:
        self.engine = self._scripted = engine

    @property
    def aborts(self) -> int:
        return len(self._scripted.aborted)


class Mock(EngineUnderTest):
    def __init__(self, engine: MockEngine) -> None:
        self.engine = self._mock = engine

    @property
    def aborts(self) -> int:
        return self._mock.aborts


class LlamaCpp(EngineUnderTest):
    def __init__(self, engine: LlamaCppEngine) -> None:
        self.engine = self._engine = engine
        self.vocab_size = weights().vocab_size

    @property
    def aborts(self) -> int:
        return self._engine.aborts


class Zmq(EngineUnderTest):
    def __init__(self, engine: EngineCore, events: list[str]) -> None:
        self.engine = engine
        self._events = events

    @property
    def aborts(self) -> int:
        return sum(event in ("aborted", "abort ignored") for event in self._events)

    @property
    def running(self) -> int:
        """Requests that the engine was given and neither ended nor was told to drop."""
        return self._events.count("admitted") - self._events.count("finished") - self._events.count("aborted")


@asynccontextmanager
async def open_engine(
    kind: str, *scripts: Script, tokens_per_step: int, step_seconds: float
) -> AsyncIterator[EngineUnderTest]:
    """`scripts` are for the scripted engine, the rest for those that generate by themselves."""
    match kind:
        case "scripted":
            scripted = ScriptedEngine(*scripts)
            yield Scripted(scripted)
            await scripted.aclose()
        case "mock":
            mock = MockEngine(MODEL.start, step_seconds=step_seconds, tokens_per_step=tokens_per_step)
            yield Mock(mock)
            await mock.aclose()
        case "llamacpp":
            async with open_llamacpp(
                weights(), max_model_len=8192, max_num_seqs=2 if step_seconds < 1 else 1
            ) as llamacpp:
                if step_seconds >= 1:  # it cannot be slowed down, but be busy with others
                    await llamacpp.submit(ENDLESS)
                yield LlamaCpp(llamacpp)
        case _:
            async with emulated(tokens_per_step, step_seconds) as under_test:
                yield under_test


@asynccontextmanager
async def emulated(tokens_per_step: int, step_seconds: float, max_model_len: int = 8192) -> AsyncIterator[Zmq]:
    """The real client over real sockets, and an emulator in a thread."""
    port = _free_port()
    settings = EmulatorSettings(
        handshake_address=f"tcp://127.0.0.1:{port}",
        vocab_size=MODEL.vocab_size,
        max_model_len=max_model_len,
        tokens_per_step=tokens_per_step,
        step_ms=step_seconds * 1000,
    )
    events: list[str] = []
    emulator = EngineCoreEmulator(
        settings, emulated_engines(settings, MODEL.start, lambda event, _: events.append(event))
    )
    thread = Thread(target=emulator.run)
    thread.start()
    try:
        async with connect_external(host="127.0.0.1", port=port, ready_timeout=PATIENCE_S) as engine:
            yield Zmq(engine, events)
    finally:
        emulator.stop()
        await asyncio.to_thread(thread.join, PATIENCE_S)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until it holds; fails when it does not within PATIENCE_S."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (it asks about another thread)
            await asyncio.sleep(0.002)
