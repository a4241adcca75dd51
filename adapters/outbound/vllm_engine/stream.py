"""The mailbox between the socket's reader and whoever wants one request's output."""

from collections.abc import Callable, Sequence
from itertools import chain

from application.ports.engine import TokenStream
from application.ports.source import OnReady, nobody
from domain.generation import TokenDelta
from domain.logprobs import joined_columns
from domain.sampling import SamplingParams

MOST_MERGED = 64
"""Deltas that are read as one. A reader that was away long comes back to many, and they must not hold up the others."""


class EngineTokenStream(TokenStream):
    """Filled by the socket's reader, one delta a step, which the listener may take at once."""

    def __init__(self, internal_id: str, sampling: SamplingParams, on_close: Callable[[str], None]) -> None:
        self.sampling = sampling
        self.has_output = False
        self._internal_id = internal_id
        self._on_close = on_close
        self._on_ready: OnReady = nobody
        self._deltas: list[TokenDelta] = []
        self._failure: Exception | None = None
        self._ended = False

    def put(self, delta: TokenDelta) -> None:
        self.has_output = True
        self._deltas.append(delta)
        self._on_ready()

    def fail(self, failure: Exception) -> None:
        """End with this, once what came before is read."""
        self._failure = failure
        self._on_ready()

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready

    def take(self) -> TokenDelta | None:
        deltas = self._deltas
        if not deltas:
            if self._ended:
                raise StopAsyncIteration
            if self._failure is not None:
                self._ended = True
                raise self._failure
            return None
        delta = deltas.pop() if len(deltas) == 1 else self._next_of_several()
        if delta.finish_reason is not None:
            self._ended = True
            self._on_ready()
        return delta

    def close(self) -> None:
        was_ended, self._ended = self._ended, True
        self._deltas.clear()
        self._on_close(self._internal_id)
        on_ready, self._on_ready = self._on_ready, nobody
        if not was_ended:
            on_ready()

    def _next_of_several(self) -> TokenDelta:
        deltas = self._deltas
        taken = deltas[:MOST_MERGED]
        if len({delta.logprobs.width for delta in taken if delta.logprobs is not None}) > 1:
            return deltas.pop(0)
        self._deltas = deltas[MOST_MERGED:]
        return merged(taken)


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
