"""The choices of one answer: a generation each, read together."""

from collections.abc import Sequence
from functools import partial

from application.ports.source import OnReady, Source, nobody
from application.services.gathered import Gathered
from application.services.text_generation import TextGeneration
from domain.errors import EngineFailure, RequestError
from domain.generation import TextDelta, TokenUsage, TransferParams
from domain.precedence import UsageShown
from domain.speculation import Speculation
from domain.timing import RequestTiming

Arrival = tuple[int, TextDelta]
"""The index of a choice, and what its generation brought."""


class Choices(Source[Arrival]):
    """Deltas of all choices in the order in which the engine brings them. Whoever receives it closes it.

    Nothing is read ahead of the client: what a slow one has not taken yet waits with the engine's outputs. What fails
    one fails the answer, after what others had gathered.
    """

    def __init__(self, per_prompt: int, usage_shown: UsageShown, *, shows_timing: bool, interval: int = 1) -> None:
        """So many choices, one after the other, share a prompt; of each so many tokens are shown at a time."""
        self.usage_shown = usage_shown
        """Where the answer tells its usage: resolved."""
        self._shows_timing = shows_timing
        self._per_prompt = per_prompt
        self._interval = interval
        self._generations: list[TextGeneration] = []
        self._sources: list[Source[TextDelta]] = []
        """Of each, the deltas as they are shown."""
        self._is_one = True
        self._ready: dict[int, None] = {}
        """Indexes of several choices that may have something, in the order in which they got it."""
        self._on_ready: OnReady = nobody
        self._first: Arrival | None = None
        self._failure: EngineFailure | RequestError | None = None
        """Of one of several."""
        self._running = 0
        self._closed = False

    def add(self, generation: TextGeneration) -> None:
        """One more choice, before the start."""
        self._generations.append(generation)
        self._sources.append(Gathered(generation, self._interval) if self._interval > 1 else generation)
        self._is_one = len(self._generations) == 1

    @property
    def generations(self) -> Sequence[TextGeneration]:
        """In the order of their indexes."""
        return self._generations

    @property
    def show_token_ids(self) -> bool:
        """Whether logprob tokens are placeholders: the rule, resolved for the whole answer."""
        return self._generations[0].show_token_ids

    @property
    def usage(self) -> TokenUsage:
        """Tokens of all choices so far."""
        usages = [generation.usage for generation in self._generations]
        return TokenUsage(
            sum(usage.prompt_tokens for usage in usages[:: self._per_prompt]),
            sum(usage.completion_tokens for usage in usages),
            _sum([usage.cached_tokens for usage in usages[:: self._per_prompt]]),
            _sum([usage.created_cache_tokens for usage in usages[:: self._per_prompt]]),
        )

    @property
    def transfer(self) -> TransferParams:
        """What the engine said of the caches it leaves behind the first prompt."""
        told = [generation.transfer for generation in self._generations[: self._per_prompt]]
        return next((transfer for transfer in reversed(told) if transfer is not None), TransferParams())

    @property
    def timing(self) -> RequestTiming | None:
        """How long the engine took so far; None where that is not told. Same as vLLM: several choices are not."""
        return self._generations[0].timing if self._shows_timing and self._is_one else None

    @property
    def speculation(self) -> Speculation | None:
        """How well drafts were guessed, as soon as the engine tells; likewise."""
        return self._generations[0].speculation if self._is_one else None

    async def start(self) -> None:
        """Wait for the first output of any choice."""
        if self._is_one:
            await self._generations[0].start()
            return
        self._running = len(self._generations)
        self._ready = dict.fromkeys(range(self._running))
        for index, source in enumerate(self._sources):
            source.listen(partial(self._arrive, index))
        self._first = await anext(self)

    def listen(self, on_ready: OnReady) -> None:
        if self._is_one:
            self._sources[0].listen(on_ready)
        self._on_ready = on_ready

    def take(self) -> Arrival | None:
        if self._closed:
            raise StopAsyncIteration
        if self._is_one:
            delta = self._sources[0].take()
            return None if delta is None else (0, delta)
        first, self._first = self._first, None
        return first or self._next_of_several()

    def close(self) -> None:
        """Abort every choice that has not ended."""
        self._closed = True
        for source in self._sources:
            source.close()
        on_ready, self._on_ready = self._on_ready, nobody
        on_ready()

    def _next_of_several(self) -> Arrival | None:
        """Of each that has something, in its turn."""
        if not self._running:
            return self._next_at_the_end()
        while self._ready:
            index = next(iter(self._ready))
            try:
                delta = self._sources[index].take()
            except (EngineFailure, RequestError) as failure:
                self._failure, self._running = failure, 0
                return self._next_at_the_end()
            del self._ready[index]
            if delta is None:
                continue
            if delta.finish_reason is None:
                self._ready[index] = None
            else:
                self._running -= 1
            return index, delta
        return None

    def _next_at_the_end(self) -> Arrival:
        """What others had gathered when one failed, and was not shown yet. Raises how it ended."""
        if self._failure is None:
            raise StopAsyncIteration
        for index, source in enumerate(self._sources):
            if isinstance(source, Gathered) and (rest := source.rest()) is not None:
                return index, rest  # what failed has called, as it ended in the midst of `take`: so there is more
        raise self._failure

    def _arrive(self, index: int) -> None:
        self._ready[index] = None
        self._on_ready()


def _sum(counts: Sequence[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
