"""The choices of one answer: a generation each, read together."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from application.services.text_generation import TextGeneration
from domain.generation import TextDelta, TokenUsage, TransferParams
from domain.precedence import UsageShown
from domain.speculation import Speculation
from domain.timing import RequestTiming

Arrival = tuple[int, TextDelta]
"""The index of a choice, and what its generation brought."""


class Choices(AsyncIterator[Arrival]):
    """Deltas of all choices in the order in which the engine brings them. Whoever receives it closes it.

    A single choice is read straight from its generation. Several have a task each, which reads little ahead of the
    client: what a slow one has not taken yet waits with the engine's outputs. What fails one fails the answer.
    """

    def __init__(self, per_prompt: int, usage_shown: UsageShown, *, shows_timing: bool) -> None:
        """So many choices, one after the other, share a prompt."""
        self.usage_shown = usage_shown
        """Where the answer tells its usage: resolved."""
        self._shows_timing = shows_timing
        self._per_prompt = per_prompt
        self._generations: list[TextGeneration] = []
        self._readers: list[asyncio.Task[None]] = []
        self._arrivals: asyncio.Queue[Arrival | Exception | None] = asyncio.Queue()
        self._first: Arrival | None = None
        self._running = 0
        self._closed = False

    def add(self, generation: TextGeneration) -> None:
        """One more choice, before the start."""
        self._generations.append(generation)

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
        return self._generations[0].timing if self._shows_timing and len(self._generations) == 1 else None

    @property
    def speculation(self) -> Speculation | None:
        """How well drafts were guessed, as soon as the engine tells; likewise."""
        return self._generations[0].speculation if len(self._generations) == 1 else None

    async def start(self) -> None:
        """Wait for the first output of any choice."""
        if len(self._generations) == 1:
            await self._generations[0].start()
            return
        self._running = len(self._generations)
        self._arrivals = asyncio.Queue(self._running)
        self._readers = [asyncio.create_task(self._read(*entry)) for entry in enumerate(self._generations)]
        self._first = await self._next_arrival()

    async def __anext__(self) -> Arrival:
        if len(self._generations) == 1:
            return 0, await anext(self._generations[0])
        if self._closed or not self._running:
            raise StopAsyncIteration
        first, self._first = self._first, None
        arrival = first or await self._next_arrival()
        if arrival[1].finish_reason is not None:
            self._running -= 1
        return arrival

    async def aclose(self) -> None:
        """Abort every choice that has not ended."""
        self._closed = True
        for reader in self._readers:
            reader.cancel()
        for generation in self._generations:
            await generation.aclose()
        if not self._arrivals.full():
            self._arrivals.put_nowait(None)  # whoever waits is told

    async def _next_arrival(self) -> Arrival:
        arrival = await self._arrivals.get()
        if arrival is None or self._closed:
            raise StopAsyncIteration
        if isinstance(arrival, Exception):
            raise arrival
        return arrival

    async def _read(self, index: int, generation: TextGeneration) -> None:
        try:
            await generation.start()
            async for delta in generation:
                await self._arrivals.put((index, delta))
        except Exception as failure:
            await self._arrivals.put(failure)


def _sum(counts: Sequence[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
