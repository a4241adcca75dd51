"""Many requests that come at once, and the streams that go on beside them."""

import asyncio
from collections import deque
from typing import Final

from litestar.types import ASGIApp, Receive, Scope, Send

MOST_BEGUN: Final = 8
"""Requests that begin in one turn of the event loop: each takes up to a millisecond or two to where it waits."""


class InTurns:
    """An ASGI app in which requests begin a few at a time, in their order."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._begun = 0
        """In this turn."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._next_turn)
        self._begun += 1
        if self._begun > MOST_BEGUN:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        await self._app(scope, receive, send)

    def _next_turn(self) -> None:
        self._begun = 0
        while self._waiting and self._begun < MOST_BEGUN:
            turn = self._waiting.popleft()
            if not turn.done():  # whoever waited may have been cancelled
                turn.set_result(None)
                self._begun += 1
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next_turn)
