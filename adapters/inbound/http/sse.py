"""Server-sent events, and what to do about clients that leave."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, Self, TypeVar

from litestar.types import Receive, Scope, Send

from adapters.inbound.http.errors import ClientGone

DONE = b"data: [DONE]\n\n"

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]

T = TypeVar("T")


def frame(json: bytes) -> bytes:
    """One event."""
    return b"data: " + json + b"\n\n"


class FrameSource(Protocol):
    """Frames of one answer. Closing it ends the iteration, whoever waits for the next frame."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None: ...


class EventStream:
    """An ASGI app that sends the frames of its source, and closes it however the exchange ends."""

    def __init__(self, source: FrameSource) -> None:
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        leaving = asyncio.ensure_future(self._close_when_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            async for frames in self._source:
                await send({"type": "http.response.body", "body": frames, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            leaving.cancel()
            await self._source.aclose()

    async def _close_when_gone(self, receive: Receive) -> None:
        await disconnected(receive)
        await self._source.aclose()


async def disconnected(receive: Receive) -> None:
    """Returns when the client has closed the connection. The request's body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client leaves: then ClientGone is raised."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone("The client closed the connection.")
        return working.result()
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))
