"""What one request's reader waits at."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Self

from adapters.outbound.llamacpp_engine.decoding import Outcome, is_last
from application.ports.engine import TokenStream
from domain.generation import TokenDelta


class LlamaCppStream(TokenStream):
    """Filled a step at a time. `abort` is called once, if it is closed before its end."""

    def __init__(self, abort: Callable[[], None]) -> None:
        self._abort = abort
        self._outcomes: deque[Outcome] = deque()
        self._is_complete = False
        """Whether its last outcome is there, read or not."""
        self._ended = False
        self._waiter: asyncio.Future[None] | None = None

    def put(self, outcome: Outcome) -> None:
        if self._is_complete or self._ended:
            return
        self._outcomes.append(outcome)
        self._is_complete = is_last(outcome)
        self._wake()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TokenDelta:
        while not self._outcomes:
            if self._ended:
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        outcome = self._outcomes.popleft()
        self._ended = self._is_complete and not self._outcomes
        if isinstance(outcome, TokenDelta):
            return outcome
        raise outcome

    async def aclose(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._outcomes.clear()
        self._wake()
        if not self._is_complete:
            self._abort()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
