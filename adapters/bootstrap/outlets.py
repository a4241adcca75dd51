"""Bodies of streamed responses on their way to uvicorn's connections."""

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from adapters.inbound.http.sse import Outlet
from application.ports.source import OnReady, nobody

ENOUGH: Final = 1 << 16
"""Bytes of one response that are written before others have their turn."""


class Outbox:
    """What is to be written before the event loop turns to anything else: each response's parts in one piece."""

    def __init__(self) -> None:
        self._outlets: list[ResponseOutlet] = []

    def add(self, outlet: "ResponseOutlet") -> None:
        if not self._outlets:
            asyncio.get_running_loop().call_soon(self._send)
        self._outlets.append(outlet)

    def _send(self) -> None:
        outlets, self._outlets = self._outlets, []
        for outlet in outlets:
            outlet.flush()


class ResponseOutlet(Outlet):
    """Writes the body of a response as uvicorn does, but for messages, their checks and their awaiting."""

    def __init__(self, cycle: RequestResponseCycle, outbox: Outbox) -> None:
        self._cycle = cycle
        self._flow = cycle.flow
        self._outbox = outbox
        self._parts: list[bytes] = []
        self._size = 0
        self.on_writable: OnReady = nobody

    @property
    def is_full(self) -> bool:
        return self._size > ENOUGH or self._flow.write_paused

    def write(self, body: bytes) -> None:
        if not self._parts:
            self._outbox.add(self)
        self._parts.append(body)
        self._size += len(body)

    def rest(self) -> bytes:
        rest, self._parts = self._parts, []
        self._size = 0
        return b"".join(rest)

    def flush(self) -> None:
        cycle, body = self._cycle, b"".join(self._parts)
        was_full, self._size = self._size > ENOUGH, 0
        self._parts.clear()
        if body and not cycle.disconnected:
            cycle.transport.write(b"%x\r\n%b\r\n" % (len(body), body) if cycle.chunked_encoding else body)
        if was_full and not self.is_full:
            self.on_writable()

    def listen(self, on_writable: OnReady) -> None:
        self.on_writable = on_writable
