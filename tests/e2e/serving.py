"""The application behind a real server on a real port, in the test's own loop."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx
from litestar import Litestar

from adapters.bootstrap.addresses import address_of, bind, listen
from adapters.bootstrap.http_server import HttpServer
from tests.patience import PATIENCE_S


@asynccontextmanager
async def listening(app: Litestar) -> AsyncIterator[str]:
    """Serves until the block ends; gives the address, such as `http://127.0.0.1:40123`."""
    bound = bind("127.0.0.1", 0, None)
    listen(bound)
    server = HttpServer(app, bound, keep_alive_s=5, drain_s=0)
    serving = asyncio.create_task(server.serve())
    try:
        yield address_of(bound)
    finally:
        server.stop()
        async with asyncio.timeout(PATIENCE_S):
            await serving


@asynccontextmanager
async def client_at(address: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=address, trust_env=False, timeout=PATIENCE_S) as client:
        yield client


def post_head(path: str, *headers: str) -> bytes:
    """A request up to its body."""
    lines = [f"POST {path} HTTP/1.1", "host: x", "content-type: application/json", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


class Connection:
    """A client on a bare socket, which reads what and when the test says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: str, limit: int = 1 << 16) -> Self:
        """At most about twice `limit` bytes are taken from the socket before they are read."""
        host, _, port = address.removeprefix("http://").partition(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=limit))

    async def send(self, content: bytes) -> None:
        self._writer.write(content)
        await self._writer.drain()

    async def post(self, path: str, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
        )
        await self.send(head.encode() + b"\r\n" + content)

    async def read_until(self, mark: bytes) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.readuntil(mark)

    async def read_all(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            return await self._reader.read()

    async def close(self) -> None:
        """An orderly end: what was sent arrives."""
        self._writer.close()
        await self._writer.wait_closed()

    def reset(self) -> None:
        """An end as of a killed process whose peer still sends."""
        self._writer.transport.abort()
