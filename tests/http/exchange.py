"""One HTTP exchange with the application, driven by hand: the test decides what the client reads and when it leaves."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx
from litestar.types import ASGIApp

from tests.http.serving import JSON
from tests.patience import PATIENCE_S


class Exchange:
    """A client whose request is under way. It reads what it is sent, unless told not to, and stays until told to leave.

    As a server does, a send to a client that does not read waits, until the client is gone: then it does nothing.
    """

    def __init__(
        self,
        app: ASGIApp,
        path: str,
        body: dict[str, Any] | bytes,
        *,
        headers: Mapping[str, str] = JSON,
        reads: bool = True,
    ) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self._received = bytearray()
        self.complete = False
        self._body: bytes | None = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._left = asyncio.Event()
        self._reads = asyncio.Event()
        if reads:
            self._reads.set()
        self._progress = asyncio.Condition()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        self.served = asyncio.create_task(app(scope, self._receive, self._send))  # type: ignore[arg-type]

    def leave(self) -> None:
        self._left.set()

    def stop_reading(self) -> None:
        self._reads.clear()

    def read_on(self) -> None:
        self._reads.set()

    async def until(self, seen: Callable[["Exchange"], bool]) -> None:
        """Wait until what was received is as wanted."""
        async with asyncio.timeout(PATIENCE_S), self._progress:
            await self._progress.wait_for(lambda: seen(self))

    async def until_received(self, content: bytes) -> None:
        await self.until(lambda exchange: content in exchange.received)

    async def end(self) -> None:
        """Wait until the application is done with it."""
        async with asyncio.timeout(PATIENCE_S):
            await self.served

    @property
    def received(self) -> bytes:
        return bytes(self._received)

    @property
    def response(self) -> httpx.Response:
        """What came so far."""
        assert self.status is not None
        return httpx.Response(self.status, headers=self.headers, content=self.received)

    async def _receive(self) -> dict[str, Any]:
        body, self._body = self._body, None
        if body is not None:
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], message["headers"]
        await _either(self._reads, self._left)
        if self._left.is_set():
            return
        async with self._progress:
            self._received += message.get("body", b"")
            self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            self._progress.notify_all()


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until it holds; fails when it does not within PATIENCE_S."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (nothing tells when)
            await asyncio.sleep(0)


async def _either(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
