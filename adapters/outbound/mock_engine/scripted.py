"""An engine that does exactly what a test says, step by step."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from application.ports.engine import EngineCore, EngineDead, TokenStream, check_rank
from application.ports.source import OnReady, nobody
from domain.errors import EngineFailure
from domain.generation import FinishReason, GenerationRequest, StopReason, TokenDelta
from domain.logprobs import WHOLE_VOCABULARY, LogprobColumns

Step = TokenDelta | Exception | asyncio.Event
"""One turn of a stream: give this delta, raise this, or wait for this before going on."""

Script = Sequence[Step] | Exception
"""What comes of one request; an exception alone is raised when the request is submitted."""

LOGPROB_PER_RANK: Final = -0.125
"""`steps` scores rank r with r times this: exact in single precision, and short when written out."""


def steps(
    *token_ids: int,
    alternatives: Sequence[int] | Sequence[Sequence[int]] = (),
    tokens_per_step: int = 1,
    finish_reason: FinishReason = FinishReason.LENGTH,
    stop_reason: StopReason | None = None,
) -> list[TokenDelta]:
    """One delta per step, each with scores, the last with the finish.

    `alternatives` are the ids ranked 1, 2, ... beside each token: for all tokens alike, or one sequence per token. A
    token that is not among its alternatives ranks right behind them.
    """
    ranked = [_beside(alternatives, index) for index in range(len(token_ids))]
    deltas = [
        TokenDelta(token_ids[start : start + tokens_per_step], _columns(token_ids, ranked, start, tokens_per_step))
        for start in range(0, len(token_ids), tokens_per_step)
    ]
    deltas[-1] = replace(deltas[-1], finish_reason=finish_reason, stop_reason=stop_reason)
    return deltas


def _beside(alternatives: Sequence[int] | Sequence[Sequence[int]], index: int) -> list[int]:
    flat = [item for item in alternatives if isinstance(item, int)]
    nested = [item for item in alternatives if not isinstance(item, int)]
    return list(nested[index]) if nested else flat


def _columns(token_ids: Sequence[int], ranked: Sequence[list[int]], start: int, count: int) -> LogprobColumns:
    ids: list[int] = []
    logprobs: list[float] = []
    ranks: list[int] = []
    for token_id, others in zip(token_ids[start : start + count], ranked[start : start + count], strict=True):
        rank = others.index(token_id) + 1 if token_id in others else len(others) + 1
        ranks.append(rank)
        ids += [token_id, *others]
        logprobs += [LOGPROB_PER_RANK * place for place in (rank, *range(1, len(others) + 1))]
    return LogprobColumns(len(ids) // len(ranks), ids, logprobs, ranks)


class ScriptedEngine(EngineCore):
    """Plays one script for every request, or, given several, one for each request in the order of submission.

    A script that has no finish ends with FinishReason.LENGTH on its last delta. Scores that a request did not ask for
    are left out and rows wider than it asked for are cut, so that one script serves every request; what a script does
    not have is not made up. Everything else of the sampling parameters is ignored.
    """

    def __init__(self, *scripts: Script, max_model_len: int = 8192, version: str = "scripted") -> None:
        if not scripts:
            raise ValueError("An engine needs a script.")
        self._scripts = [script if isinstance(script, Exception) else _completed(script) for script in scripts]
        self._max_model_len = max_model_len
        self._version = version
        self._failure: EngineFailure | None = None
        self._streams: set[ScriptedStream] = set()
        self._submissions: asyncio.Queue[GenerationRequest] = asyncio.Queue()
        self._aborts: asyncio.Queue[str] = asyncio.Queue()
        self.submitted: list[GenerationRequest] = []
        """All that was admitted, in order."""
        self.aborted: list[str] = []
        """Request ids of what was closed before its end, in order."""

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def version(self) -> str:
        return self._version

    @property
    def is_alive(self) -> bool:
        return self._failure is None

    async def submit(self, request: GenerationRequest) -> TokenStream:
        if self._failure is not None:
            raise EngineDead(str(self._failure))
        check_rank(request.data_parallel_rank, 1)
        if len(self._scripts) > 1 and len(self.submitted) == len(self._scripts):
            raise AssertionError(f"{len(self._scripts)} scripts, and one request more: {request.request_id}")
        script = self._scripts[len(self.submitted) if len(self._scripts) > 1 else 0]
        if isinstance(script, Exception):
            raise script
        self.submitted.append(request)
        self._submissions.put_nowait(request)
        stream = ScriptedStream(self, request, script)
        self._streams.add(stream)
        return stream

    async def next_submitted(self) -> GenerationRequest:
        """Wait for the first submission that was not waited for yet."""
        return await self._submissions.get()

    async def next_aborted(self) -> str:
        """Wait for the first abort that was not waited for yet; gives its request id."""
        return await self._aborts.get()

    @property
    def running(self) -> int:
        """Requests that were neither read to their end nor closed."""
        return len(self._streams)

    def die(self, failure: EngineFailure | None = None) -> None:
        """Fail: running streams raise `failure`, and nothing is admitted any more."""
        if self._failure is None:
            self._failure = failure or EngineDead("The scripted engine died.")
            for stream in tuple(self._streams):
                stream.fail(self._failure)

    async def aclose(self) -> None:
        self.die(EngineDead("The scripted engine was closed."))

    def ended(self, stream: "ScriptedStream", aborted: bool) -> None:
        """A stream tells that it is over."""
        self._streams.discard(stream)
        if aborted:
            self.aborted.append(stream.request.request_id)
            self._aborts.put_nowait(stream.request.request_id)


class ScriptedStream(TokenStream):
    """One request, playing its script."""

    def __init__(self, engine: ScriptedEngine, request: GenerationRequest, script: Sequence[Step]) -> None:
        self.request = request
        self._engine = engine
        self._script = script
        self._position = 0
        self._gate: asyncio.Task[Any] | None = None
        self._on_ready: OnReady = nobody
        self._ended = False
        self._failure: EngineFailure | None = None

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready

    def take(self) -> TokenDelta | None:
        if self._ended:
            failure, self._failure = self._failure, None
            raise failure or StopAsyncIteration
        step = self._script[self._position]
        if isinstance(step, asyncio.Event):
            self._wait_at(step)
            return None
        self._position += 1
        if isinstance(step, Exception):
            self._end()
            raise step
        if step.finish_reason is not None:
            self._end()
        else:
            self._on_ready()  # the next may be there already
        return _as_asked(step, self.request)

    def close(self) -> None:
        if not self._ended:
            self._end(aborted=True)
        self._on_ready = nobody

    def fail(self, failure: EngineFailure) -> None:
        """Raise `failure` to whoever reads next, or waits."""
        self._failure = failure
        self._end()

    def _end(self, aborted: bool = False) -> None:
        self._ended = True
        if self._gate is not None:
            self._gate.cancel()
        self._engine.ended(self, aborted)
        self._on_ready()

    def _wait_at(self, gate: asyncio.Event) -> None:
        if self._gate is None:
            self._gate = asyncio.ensure_future(gate.wait())
            self._gate.add_done_callback(self._pass)

    def _pass(self, gate: "asyncio.Task[Any]") -> None:
        if not gate.cancelled():
            self._gate = None
            self._position += 1
            self._on_ready()


def _completed(script: Sequence[Step]) -> Sequence[Step]:
    """The script with an end: a finish or an exception as its last step, and nowhere else."""
    for step in script[:-1]:
        if isinstance(step, Exception) or (isinstance(step, TokenDelta) and step.finish_reason is not None):
            raise ValueError(f"Nothing comes after {step!r}, but the script goes on.")
    last = script[-1] if script else None
    if isinstance(last, Exception) or (isinstance(last, TokenDelta) and last.finish_reason is not None):
        return script
    if isinstance(last, TokenDelta):
        return [*script[:-1], replace(last, finish_reason=FinishReason.LENGTH)]
    return [*script, TokenDelta((), finish_reason=FinishReason.LENGTH)]


def _as_asked(delta: TokenDelta, request: GenerationRequest) -> TokenDelta:
    sampling = request.sampling
    logprobs = _narrowed(delta.logprobs, sampling.alternatives)
    prompt_logprobs = _narrowed(delta.prompt_logprobs, sampling.prompt_logprobs)
    if logprobs is delta.logprobs and prompt_logprobs is delta.prompt_logprobs:
        return delta
    return replace(delta, logprobs=logprobs, prompt_logprobs=prompt_logprobs)


def _narrowed(columns: LogprobColumns | None, alternatives: int | None) -> LogprobColumns | None:
    if columns is None or alternatives is None:
        return None
    if alternatives == WHOLE_VOCABULARY or columns.width <= alternatives + 1:
        return columns
    starts = range(0, len(columns.token_ids), columns.width)
    width = alternatives + 1
    return LogprobColumns(
        width,
        [token_id for start in starts for token_id in columns.token_ids[start : start + width]],
        [logprob for start in starts for logprob in columns.logprobs[start : start + width]],
        columns.ranks,
    )
