"""An engine in the same process that needs no model."""

import asyncio
import os
from collections.abc import Callable
from typing import Protocol

from msgspec import structs

from application.ports.engine import EngineCore, EngineDead, EngineUnavailable, TokenStream, check_rank
from application.ports.lora import AdapterNotFound, LoraLoader
from application.ports.source import OnReady, nobody
from domain.generation import GenerationRequest, TokenDelta
from domain.lora import LoraAdapter
from domain.timing import EngineStart


class Generation(Protocol):
    """What a mock engine plays for one request."""

    def step(self, tokens: int, alternatives: int | None) -> TokenDelta:
        """The next tokens, or fewer at the end, with scores of as many alternatives unless that is None."""
        ...


class MockEngine(EngineCore, LoraLoader):
    """Answers each request with a generation of its own, one step in each `step_seconds`.

    Steps keep an absolute schedule per request: to a reader that comes late, those that were due come merged. With
    0 seconds a step comes whenever it is asked for, after the loop had a turn.
    """

    def __init__(
        self,
        generate: Callable[[GenerationRequest], Generation],
        *,
        step_seconds: float = 0.0,
        tokens_per_step: int = 1,
        max_model_len: int = 8192,
        version: str = "mock-1",
    ) -> None:
        self._generate = generate
        self.step_seconds = step_seconds
        self.tokens_per_step = tokens_per_step
        self._max_model_len = max_model_len
        self._version = version
        self._streams: set[MockStream] = set()
        self._adapters: set[int] = set()
        self._closed = False
        self.aborts = 0
        """How many requests were closed before their end."""

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def version(self) -> str:
        return self._version

    @property
    def is_alive(self) -> bool:
        return not self._closed

    @property
    def running(self) -> int:
        """Requests that were neither read to their end nor closed."""
        return len(self._streams)

    async def submit(self, request: GenerationRequest) -> TokenStream:
        if self._closed:
            raise EngineDead("The mock engine is closed.")
        check_rank(request.data_parallel_rank, 1)
        stream = MockStream(self, self._generate(request), request.sampling.alternatives)
        self._streams.add(stream)
        return stream

    async def load_adapter(self, adapter: LoraAdapter, *, in_place: bool = False) -> None:
        if self._closed:
            raise EngineDead("The mock engine is closed.")
        is_new = in_place or adapter.id not in self._adapters
        if is_new and not os.path.exists(adapter.path):  # noqa: ASYNC240 (a glance is all that loading one is here)
            raise AdapterNotFound("There is no adapter at the path.", "lora_path")
        self._adapters.add(adapter.id)

    async def aclose(self) -> None:
        self._closed = True
        for stream in tuple(self._streams):
            stream.end(EngineUnavailable("The server is shutting down."))

    def forget(self, stream: "MockStream") -> None:
        """A stream tells that it is over."""
        self._streams.discard(stream)


class MockStream(TokenStream):
    """One request being answered."""

    def __init__(self, engine: MockEngine, generation: Generation, alternatives: int | None) -> None:
        self._engine = engine
        self._generation = generation
        self._alternatives = alternatives
        self._loop = asyncio.get_running_loop()
        self._start: float | None = self._loop.time()
        self._due = self._start + engine.step_seconds
        self._on_ready: OnReady = nobody
        self._timer: asyncio.Handle | None = None
        self._is_due = False
        self._ended = False
        self._failure: EngineUnavailable | None = None

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready

    def take(self) -> TokenDelta | None:
        if self._ended:
            failure, self._failure = self._failure, None
            raise failure or StopAsyncIteration
        if not self._is_due:
            self._await_next()
            return None
        self._is_due = False
        delta = self._generation.step(self._steps_due() * self._engine.tokens_per_step, self._alternatives)
        if delta.finish_reason is None:
            self._await_next()
        else:
            self.end()
        return self._timed(delta)

    def _timed(self, delta: TokenDelta) -> TokenDelta:
        """It is taken up as soon as it is admitted."""
        now, began = self._loop.time(), self._start
        self._start = None
        start = None if began is None else EngineStart(began, began, now)
        return structs.replace(delta, start=start, produced_at=now)

    def close(self) -> None:
        if not self._ended:
            self._engine.aborts += 1
            self.end()
        self._on_ready = nobody

    def end(self, failure: EngineUnavailable | None = None) -> None:
        """Nothing more comes; whoever waits is told so, with `failure` if there is one."""
        self._ended = True
        self._failure = failure
        self._engine.forget(self)
        if self._timer is not None:
            self._timer.cancel()
        self._on_ready()

    def _await_next(self) -> None:
        if self._timer is None:
            is_late = self._due <= self._loop.time()
            self._timer = self._loop.call_soon(self._come) if is_late else self._loop.call_at(self._due, self._come)

    def _come(self) -> None:
        self._timer = None
        self._is_due = True
        self._on_ready()

    def _steps_due(self) -> int:
        seconds = self._engine.step_seconds
        if not seconds:
            return 1
        steps = max(1, int((self._loop.time() - self._due) / seconds) + 1)
        self._due += steps * seconds
        return steps
