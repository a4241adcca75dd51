"""Server-sent events."""

import asyncio
from typing import Protocol, cast

from litestar.types import Receive, Scope, Send

from adapters.inbound.http.asgi_extensions import extend, extension_of
from adapters.inbound.http.departure import departure_of
from application.ports.source import OnReady, Source, nobody

DONE = b"data: [DONE]\n\n"

KEEP_ALIVE = b": keep-alive\n\n"
"""A comment, which readers of events skip."""

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


def frame(json: bytes) -> bytes:
    """One event."""
    return b"data: " + json + b"\n\n"


class SilenceLimit(float):
    """Seconds after which a silent stream sends a comment, so that no proxy takes it for dead; 0 is never."""


class KeptAlive(Source[bytes]):
    """Frames of a source, with comments where it is silent for long."""

    def __init__(self, source: Source[bytes], silence_s: float) -> None:
        self._source = source
        self._silence_s = silence_s
        self._on_ready: OnReady = nobody
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(silence_s, self._look)
        self._last = self._loop.time()
        """When there was something."""
        self._is_silent = False

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready
        self._source.listen(on_ready)

    def take(self) -> bytes | None:
        frames = self._source.take()
        if frames is None and self._is_silent:
            frames = KEEP_ALIVE
        if frames is not None:
            self._is_silent = False
            self._last = self._loop.time()
        return frames

    def close(self) -> None:
        self._timer.cancel()
        self._source.close()
        self._on_ready = nobody

    def _look(self) -> None:
        """One timer a stream, however many frames: it looks again when the last of them will have been long ago."""
        until = self._last + self._silence_s
        if until <= self._loop.time():
            self._is_silent = True
            self._on_ready()
            until = self._loop.time() + self._silence_s  # a client that is behind may not have been sent anything
        self._timer = self._loop.call_at(until, self._look)


class Outlet(Protocol):
    """The connection of a response, for bodies that are written without waiting."""

    @property
    def is_full(self) -> bool:
        """Whether the client is behind: then nothing more should be written for now."""

    def write(self, body: bytes) -> None:
        """The next part of the response's body, after the response has started. Not empty. It goes out with others
        that come before the event loop turns to anything else."""

    def rest(self) -> bytes:
        """What has not gone out yet, for whoever ends the body to send: it is written no more."""

    def listen(self, on_writable: OnReady) -> None:
        """Call this when it is no longer full."""


_OUTLET = "northbound.outlet"


def with_outlet(scope: Scope, outlet: Outlet) -> None:
    """The server's word that a response to this may be written so."""
    extend(scope, _OUTLET, outlet)


def outlet_of(scope: Scope) -> Outlet | None:
    """None where the server knows no such thing."""
    return cast("Outlet | None", extension_of(scope, _OUTLET))


class EventStream:
    """An ASGI app that sends the frames of its source, and closes it however the exchange ends."""

    def __init__(self, source: Source[bytes], silence: SilenceLimit) -> None:
        self._source = KeptAlive(source, silence) if silence else source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        departure = departure_of(scope, receive)
        departure.listen(self._source.close)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            rest = b""
            if outlet := outlet_of(scope):
                try:
                    rest = await _Forwarding(self._source, outlet).rest
                finally:
                    outlet.listen(nobody)
            else:
                async for frames in self._source:
                    await send({"type": "http.response.body", "body": frames, "more_body": True})
            await send({"type": "http.response.body", "body": rest, "more_body": False})
        finally:
            departure.forget()
            self._source.close()


class _Forwarding:
    """Writes what a source has as soon as it has it: in the engine's callback, with no task in between."""

    def __init__(self, source: Source[bytes], outlet: Outlet) -> None:
        self._source = source
        self._outlet = outlet
        self._is_under_way = False
        self._is_behind = True
        """Whether there may be more to take than one item at each call."""
        self.rest: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """At the end of the source, what is to go out with the end of the response."""
        source.listen(self._forward)
        outlet.listen(self._forward)
        self._forward()

    def _forward(self) -> None:
        if self._is_under_way or self.rest.done():
            self._is_behind = True
            return
        self._is_under_way = True  # what is taken may close the source, which calls back
        try:
            while not self._outlet.is_full:
                if (frames := self._source.take()) is None:
                    self._is_behind = False
                    return
                self._outlet.write(frames)
                if not self._is_behind:
                    return
            self._is_behind = True
        except StopAsyncIteration:
            self.rest.set_result(self._outlet.rest())
        except Exception as failure:
            self.rest.set_exception(failure)
        finally:
            self._is_under_way = False
