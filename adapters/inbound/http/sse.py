"""Server-sent events, and what to do about clients that leave."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Protocol, Self, TypeVar

from litestar.types import Receive, Scope, Send

from adapters.inbound.http.errors import ClientGone

DONE = b"data: [DONE]\n\n"

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which readers of events skip."""

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


class SilenceLimit(float):
    """Seconds after which a silent stream sends a comment, so that no proxy takes it for dead; 0 is never."""


class KeptAlive:
    """Frames of a source, with comments where it is silent for long."""

    def __init__(self, source: FrameSource, silence_s: float) -> None:
        self._source = source
        self._silence_s = silence_s
        self._next: asyncio.Task[bytes] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._next is None:
            self._next = asyncio.create_task(_next_of(self._source))
        await asyncio.wait((self._next,), timeout=self._silence_s)
        if not self._next.done():
            return KEEP_ALIVE
        done, self._next = self._next, None
        return done.result()

    async def aclose(self) -> None:
        await self._source.aclose()
        if self._next is not None:
            await asyncio.gather(self._next, return_exceptions=True)  # which has ended with the source


async def _next_of(source: FrameSource) -> bytes:
    return await anext(source)


class EventStream:
    """An ASGI app that sends the frames of its source, and closes it however the exchange ends."""

    def __init__(self, source: FrameSource, silence: SilenceLimit) -> None:
        self._source = KeptAlive(source, silence) if silence else source

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
