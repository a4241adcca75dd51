"""Responses to HTTP/1.0, which knows no chunks: a body whose length nobody told ends with the connection."""

from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class Unchunked:
    """An application, for one cycle of a client that speaks HTTP/1.0. uvicorn ends its connection behind the answer."""

    def __init__(self, app: ASGI3Application, cycle: RequestResponseCycle) -> None:
        self._app = app
        self._cycle = cycle
        cycle.waiting_for_100_continue = False  # likewise unknown to it

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        is_length_told = False

        async def send_unchunked(message: ASGISendEvent) -> None:
            nonlocal is_length_told
            if message["type"] == "http.response.start":
                is_length_told = any(name.lower() == b"content-length" for name, _ in message["headers"])
                if not is_length_told:
                    self._cycle.chunked_encoding = False
            elif message["type"] == "http.response.body" and not is_length_told:
                self._cycle.expected_content_length = len(message.get("body", b""))  # uvicorn compares them
            await send(message)

        await self._app(scope, receive, send_unchunked)
