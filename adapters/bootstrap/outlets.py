"""Responses on their way to uvicorn's connections: their heads, and the bodies of those that are streamed."""

import asyncio
from typing import Final, Protocol

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from adapters.inbound.http.sse import Outlet
from application.ports.source import OnReady, nobody

ENOUGH: Final = 1 << 16
"""Bytes of one response that are written before others have their turn."""


class Held(Protocol):
    """What waits in an outbox."""

    def flush(self) -> None:
        """Write it, unless it has gone out already."""


class Outbox:
    """What is to be written before the event loop turns to anything else: each response's parts in one piece."""

    def __init__(self) -> None:
        self._held: list[Held] = []

    def add(self, held: Held) -> None:
        if not self._held:
            asyncio.get_running_loop().call_soon(self._send)
        self._held.append(held)

    def _send(self) -> None:
        all_held, self._held = self._held, []
        for held in reversed(all_held):  # a head came before its frames, which take it along
            held.flush()


class HeldHead:
    """Takes the place of a cycle's connection until the response's head is out, which goes with what follows at once,
    and by itself if nothing does."""

    def __init__(self, cycle: RequestResponseCycle, outbox: Outbox) -> None:
        self._cycle = cycle
        self._connection = cycle.transport
        self._outbox = outbox
        self._head = b""
        cycle.transport = self  # type: ignore[assignment]  # of which this is what a cycle uses

    def write(self, content: bytes) -> None:
        if self._head or self._cycle.scope["method"] == "HEAD":  # which is answered by a head alone
            self._send(content)
        elif self._cycle.response_started:
            self._head = content
            self._outbox.add(self)
        else:
            self._connection.write(content)  # 100 Continue

    def flush(self) -> None:
        if self._head:
            self._send(b"")

    def _send(self, content: bytes) -> None:
        self._cycle.transport = self._connection
        if not self._cycle.disconnected:
            self._connection.write(self._head + content)
        self._head = b""

    def is_closing(self) -> bool:
        return self._connection.is_closing()

    def close(self) -> None:
        self.flush()
        self._connection.close()


class ResponseOutlet(Outlet):
    """Writes the body of a response as uvicorn does, but for messages, their checks and their awaiting."""

    def __init__(self, cycle: RequestResponseCycle, outbox: Outbox) -> None:
        self._cycle = cycle
        self._flow = cycle.flow
        self._outbox = outbox
        self._body = b""
        """What has not gone out yet."""
        self.on_writable: OnReady = nobody

    @property
    def is_full(self) -> bool:
        return len(self._body) > ENOUGH or self._flow.write_paused

    def write(self, body: bytes) -> None:
        if not self._body:
            self._outbox.add(self)
        self._body += body

    def rest(self) -> bytes:
        rest, self._body = self._body, b""
        return rest

    def flush(self) -> None:
        cycle, body, self._body = self._cycle, self._body, b""
        if body and not cycle.disconnected:
            cycle.transport.write(b"%x\r\n%b\r\n" % (len(body), body) if cycle.chunked_encoding else body)
        if len(body) > ENOUGH and not self.is_full:
            self.on_writable()

    def listen(self, on_writable: OnReady) -> None:
        self.on_writable = on_writable
