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
    """The result of `work`, which is cancelled when the client leaves: then ClientGone is raised.

    `work` runs in the caller's task: were it a task of its own, a cancellation of the caller could come between its
    result and whoever is to close that.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - it is running
    cancelled_before, gone = task.cancelling(), False

    async def leave() -> None:
        nonlocal gone
        await disconnected(receive)
        gone = task.cancel()

    leaving = asyncio.ensure_future(leave())
    try:
        return await work
    except asyncio.CancelledError:
        if gone and task.cancelling() == cancelled_before + 1:
            raise ClientGone("The client closed the connection.") from None
        raise
    finally:
        leaving.cancel()
        if gone:
            task.uncancel()
