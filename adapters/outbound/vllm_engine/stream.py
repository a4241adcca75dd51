"""The mailbox between the socket's reader and whoever waits for one request's output."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain

from application.ports.engine import TokenStream
from domain.generation import TokenDelta
from domain.logprobs import joined_columns
from domain.sampling import SamplingParams

MOST_MERGED = 64
"""Deltas that are read as one. A reader that was away long comes back to many, and they must not hold up the others."""


class EngineTokenStream(TokenStream):
    """Filled by the reader, one delta a step, and read by one task: one wake-up for however much has piled up."""

    def __init__(self, internal_id: str, sampling: SamplingParams, on_close: Callable[[str], None]) -> None:
        self.sampling = sampling
        self.has_output = False
        self._internal_id = internal_id
        self._on_close = on_close
        self._deltas: list[TokenDelta] = []
        self._failure: Exception | None = None
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, delta: TokenDelta) -> None:
        self.has_output = True
        self._deltas.append(delta)
        self._wake()

    def fail(self, failure: Exception) -> None:
        """End the iteration with this, once what came before is read."""
        self._failure = failure
        self._wake()

    def __aiter__(self) -> "EngineTokenStream":
        return self

    async def __anext__(self) -> TokenDelta:
        while not self._deltas:
            if self._ended:
                raise StopAsyncIteration
            if self._failure is not None:
                self._ended = True
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        delta = self._take()
        self._ended = delta.finish_reason is not None
        return delta

    async def aclose(self) -> None:
        self._ended = True
        self._deltas.clear()
        self._wake()
        self._on_close(self._internal_id)

    def _take(self) -> TokenDelta:
        deltas = self._deltas
        if len(deltas) == 1 or len({delta.logprobs.width for delta in deltas if delta.logprobs is not None}) > 1:
            return deltas.pop(0)
        taken, self._deltas = deltas[:MOST_MERGED], deltas[MOST_MERGED:]
        return merged(taken)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def merged(deltas: Sequence[TokenDelta]) -> TokenDelta:
    """Consecutive steps of one request, whose rows are equally wide, as if they had been one."""
    first, last = deltas[0], deltas[-1]
    rows = [delta.logprobs for delta in deltas if delta.logprobs is not None]
    return TokenDelta(
        list(chain.from_iterable(delta.token_ids for delta in deltas)),
        joined_columns(rows) if rows else None,
        first.prompt_logprobs,
        last.finish_reason,
        last.stop_reason,
        first.cached_tokens,
        first.created_cache_tokens,
        next((delta.transfer for delta in reversed(deltas) if delta.transfer is not None), None),
        first.start,
        last.produced_at,
        last.speculation,
    )
