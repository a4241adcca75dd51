"""HTTP/1.1 as uvicorn reads it, with an end to what it gathers of a request's head, and no end at an upgrade."""

import asyncio
from typing import Any

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from adapters.bootstrap.departures import CycleDeparture
from adapters.bootstrap.outlets import HeldHead, Outbox, ResponseOutlet
from adapters.bootstrap.unchunked import Unchunked
from adapters.inbound.http.departure import with_departure
from adapters.inbound.http.errors import describe
from adapters.inbound.http.sse import with_outlet
from domain.errors import RequestError

MOST_HEADERS = 256
LARGEST_HEAD = 4 << 20
"""Bytes. Same as vLLM, where another parser is told."""
MOST_AHEAD = 1 << 18
"""Bytes of further requests that are kept while one is answered."""


class NotHttp(RequestError):
    """What came is no request, or the head of one that has no end."""

    def __init__(self) -> None:
        super().__init__("The request is not valid HTTP, or its head is too large.")


class ReadingAhead(FlowControl):
    """Lets a client send further requests while one is answered, where uvicorn stops at the first: a connection that is
    not read does not tell that its client has left."""

    ahead = 0
    """Bytes since there was more than one request."""

    def read_on(self, came: int) -> None:
        self.ahead += came
        self.resume_reading()

    def resume_reading(self) -> None:
        if self.ahead <= MOST_AHEAD:
            super().resume_reading()


class HttpProtocol(HttpToolsProtocol):
    """The limits hold for trailers too, which are headers that come late. A request to go on in another protocol is
    answered in this one."""

    def __init__(self, *args: Any, outbox: Outbox, **kwargs: Any) -> None:
        """Beside uvicorn's arguments, what all connections of a server share."""
        super().__init__(*args, **kwargs)
        self._outbox = outbox

    _gathered = 0
    """Bytes since the request began or a part of its body came."""

    _running: RequestResponseCycle | None = None
    """The last to be started; others may wait behind it."""

    _outlet: ResponseOutlet | None = None
    _departure: CycleDeparture | None = None
    """Both its."""

    flow: ReadingAhead

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.flow = ReadingAhead(transport)

    def data_received(self, data: bytes) -> None:
        self._gathered += len(data)
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("")
        if self._gathered > LARGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("")
        if self.pipeline and not self.transport.is_closing():
            self.flow.read_on(len(data))

    def _parse(self, data: bytes) -> None:
        rest = memoryview(data)
        while True:
            try:
                self.parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                if self._upgrades:
                    rest = rest[upgrade.args[0] :]
                    self._start_over_without_upgrade()
                    continue
            return

    @property
    def _upgrades(self) -> bool:
        """Whether to read the head again, without what asks for another protocol. CONNECT asks by itself."""
        if not self.parser.should_upgrade() or self.parser.get_method() == b"CONNECT":
            return False
        return any(name == b"upgrade" for name, _ in self.headers)

    def _start_over_without_upgrade(self) -> None:
        """The parser takes all that follows for another protocol, the body included."""
        method, version = self.parser.get_method(), self.parser.get_http_version().encode()
        headers = b"".join(b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade")
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # same as uvicorn
        self.parser.feed_data(b"%b %b HTTP/%b\r\n%b\r\n" % (method, self.url, version, headers))

    def on_message_begin(self) -> None:
        self._gathered = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            raise NotHttp()  # the parser ends with it

    def on_headers_complete(self) -> None:
        if not self._upgrades:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self._upgrades:
            super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._gathered = 0
        super().on_body(body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        if not self.pipeline:
            self.flow.ahead = 0
        HeldHead(cycle, self._outbox)
        self._outlet = ResponseOutlet(cycle, self._outbox)
        with_outlet(cycle.scope, self._outlet)  # type: ignore[arg-type]  # both are ASGI's
        self._departure = CycleDeparture(cycle)
        with_departure(cycle.scope, self._departure)  # type: ignore[arg-type]  # likewise
        if cycle.scope["http_version"] == "1.0":
            app = Unchunked(app, cycle)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        if self._running is not None:
            # they hold it: a ring, that only a collection of garbage would find
            self._running.scope["extensions"] = {}
        super().on_response_complete()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._outlet is not None:
            self._outlet.on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        # uvicorn tells the request that came last, even if that still waits for this one
        if self._running and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)
        if self._departure is not None:
            self._departure.tell()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - there is nothing more to say
        """In the envelope of every other error, unless a response is under way, of which it would seem a part."""
        if self._running and self._running.response_started and not self._running.response_complete:
            self.transport.close()
            return
        _, content = describe(NotHttp())
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + content)
        self.transport.close()
