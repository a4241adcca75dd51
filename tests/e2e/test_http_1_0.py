"""Clients that speak HTTP/1.0: no chunks, and the end of a connection is the end of an answer."""

import asyncio
import json

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import TokenDelta
from tests.e2e.serving import Connection, listening
from tests.http.serving import application, by_endpoint, question


async def answer(address: str, method: str, path: str, body: bytes = b"", *headers: str) -> tuple[list[bytes], bytes]:
    """The lines of the answer's head, and all that comes behind it until the connection ends."""
    lines = [f"{method} {path} HTTP/1.0", "content-type: application/json", f"content-length: {len(body)}", *headers]
    connection = await Connection.open(address)
    await connection.send("\r\n".join([*lines, "", ""]).encode() + body)
    head, _, content = (await connection.read_all()).partition(b"\r\n\r\n")
    await connection.close()
    status, *rest = head.lower().split(b"\r\n")
    assert status == b"http/1.1 200 ok"
    assert b"connection: close" in rest
    assert not any(line.startswith(b"transfer-encoding") for line in rest)
    return rest, content


ALSO_ASKED = pytest.mark.parametrize("headers", [[], ["connection: keep-alive"], ["expect: 100-continue"]])


@by_endpoint
@ALSO_ASKED
async def test_stream(path: str, headers: list[str]) -> None:
    body = json.dumps(question(path, stream=True)).encode()
    later = asyncio.Event()
    later.set()
    async with listening(application(ScriptedEngine([TokenDelta([104]), later, *steps(105)]))) as address:
        _, content = await answer(address, "POST", path, body, *headers)
    *chunks, done, nothing = content.split(b"\n\n")
    assert (done, nothing) == (b"data: [DONE]", b"")
    assert all(json.loads(chunk.removeprefix(b"data: ")) for chunk in chunks)


@by_endpoint
@ALSO_ASKED
async def test_whole_answer(path: str, headers: list[str]) -> None:
    body = json.dumps(question(path)).encode()
    async with listening(application(ScriptedEngine(steps(104, 105)))) as address:
        head, content = await answer(address, "POST", path, body, *headers)
    assert b"content-length: %d" % len(content) in head
    assert json.loads(content)["usage"]["completion_tokens"] == 2


@pytest.mark.parametrize("path", ["/metrics", "/v1/models", "/openapi.json"])
async def test_other_routes(path: str) -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        head, content = await answer(address, "GET", path)
    assert b"content-length: %d" % len(content) in head
