"""HTTP/1.1 as uvicorn reads it, with an end to what it gathers of a request's head."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from adapters.inbound.http.errors import describe
from domain.errors import RequestError

MOST_HEADERS = 256
LARGEST_HEAD = 4 << 20
"""Bytes. Same as vLLM, where another parser is told."""


class NotHttp(RequestError):
    """What came is no request, or the head of one that has no end."""

    def __init__(self) -> None:
        super().__init__("The request is not valid HTTP, or its head is too large.")


class HttpProtocol(HttpToolsProtocol):
    """The limits hold for trailers too, which are headers that come late."""

    _gathered = 0
    """Bytes since the request began or a part of its body came."""

    def data_received(self, data: bytes) -> None:
        self._gathered += len(data)
        super().data_received(data)
        if self._gathered > LARGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("")

    def on_message_begin(self) -> None:
        self._gathered = 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            raise NotHttp()  # the parser ends with it

    def on_body(self, body: bytes) -> None:
        self._gathered = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - there is nothing more to say
        """In the envelope of every other error."""
        _, content = describe(NotHttp())
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + content)
        self.transport.close()
