"""Requests that are refused before anything is made of them, over real sockets."""

import gzip
import json

import httpx
import pytest

from adapters.bootstrap.http_protocol import LARGEST_HEAD, MOST_HEADERS
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.e2e.serving import Connection, client_at, listening, post_head
from tests.http.answers import error_of
from tests.http.serving import CHAT, application, by_endpoint, question

LIMIT = 100_000


@by_endpoint
async def test_body_over_the_limit(path: str) -> None:
    engine = ScriptedEngine(steps(104))
    async with listening(application(engine, body_limit=LIMIT)) as address, client_at(address) as client:
        for size in (LIMIT, 50 * LIMIT):
            body = json.dumps(question(path, user="x" * size)).encode()
            response = await client.post(path, content=body, headers={"content-type": "application/json"})
            error_of(response, 413, "RequestEntityTooLargeError")
        assert (await client.post(path, json=question(path))).status_code == 200
    assert len(engine.submitted) == 1


async def test_length_over_the_limit_is_refused_before_the_body_comes() -> None:
    async with listening(application(ScriptedEngine(steps(104)), body_limit=LIMIT)) as address:
        connection = await Connection.open(address)
        await connection.send(post_head(CHAT, f"content-length: {LIMIT + 1}"))
        assert b" 413 " in await connection.read_until(b"\r\n\r\n")
        await connection.close()


async def test_endless_body_is_refused_at_the_limit() -> None:
    async with listening(application(ScriptedEngine(steps(104)), body_limit=LIMIT)) as address:
        connection = await Connection.open(address)
        await connection.send(post_head(CHAT, "transfer-encoding: chunked"))
        for _ in range(11):
            await connection.send(b"%x\r\n%b\r\n" % (LIMIT // 10, b" " * (LIMIT // 10)))
        assert b" 413 " in await connection.read_until(b"\r\n\r\n")
        await connection.close()


@pytest.mark.parametrize("length", ["ten", "-1", "1e3", "10, 11"])
async def test_length_that_is_no_number(length: str) -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        await connection.send(post_head(CHAT, f"content-length: {length}") + b"{}")
        assert b" 400 " in await connection.read_until(b"\r\n\r\n")
        await connection.close()


NOT_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nhost x\r\n\r\n",
    "unknown method": b"FOO /health HTTP/1.1\r\nhost: x\r\n\r\n",
    "NUL in the path": b"GET /a\0b HTTP/1.1\r\nhost: x\r\n\r\n",
    "two lengths": post_head(CHAT, "content-length: 2", "content-length: 3") + b"{}",
    "length and chunks": post_head(CHAT, "content-length: 2", "transfer-encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
    "no chunk": post_head(CHAT, "transfer-encoding: chunked") + b"zz\r\n{}\r\n0\r\n\r\n",
    "long path": b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    "many headers": post_head(CHAT, "content-length: 2", *[f"x-{n}: y" for n in range(MOST_HEADERS)]) + b"{}",
    "many trailers": post_head(CHAT, "transfer-encoding: chunked") + b"0\r\n" + b"x: y\r\n" * MOST_HEADERS + b"\r\n",
}


@pytest.mark.parametrize("sent", NOT_HTTP.values(), ids=NOT_HTTP.keys())
async def test_what_is_no_http_is_told_so_and_the_connection_ends(sent: bytes) -> None:
    engine = ScriptedEngine(steps(104))
    async with listening(application(engine)) as address:
        connection = await Connection.open(address)
        await connection.send(sent)
        head, _, body = (await connection.read_all()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        error = error_of(httpx.Response(400, content=body, headers={"content-type": "application/json"}), 400)
        assert "HTTP" in error["message"]
        await connection.close()
    assert not engine.submitted


async def test_as_many_headers_as_may_come() -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        body = json.dumps(question(CHAT)).encode()
        more = [f"x-{n}: y" for n in range(MOST_HEADERS - 3)]
        await connection.send(post_head(CHAT, f"content-length: {len(body)}", *more) + body)
        assert b" 200 " in await connection.read_until(b"\r\n\r\n")
        await connection.close()


async def test_each_request_may_have_a_large_head() -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        for _ in range(5):
            await connection.send(b"GET /health HTTP/1.1\r\nhost: x\r\nx: " + b"y" * (LARGEST_HEAD // 4) + b"\r\n\r\n")
            assert b" 200 " in await connection.read_until(b"\r\n\r\n")
        await connection.close()


async def test_a_body_may_be_larger_than_any_head() -> None:
    body = question(CHAT, user="x" * (2 * LARGEST_HEAD))
    async with listening(application(ScriptedEngine(steps(104)))) as address, client_at(address) as client:
        assert (await client.post(CHAT, json=body)).status_code == 200


ENDLESS = {
    "path": b"GET /",
    "header": b"GET / HTTP/1.1\r\nx: ",
    "headers": b"GET / HTTP/1.1\r\n",
    "trailer": post_head(CHAT, "transfer-encoding: chunked") + b"1\r\n{\r\n0\r\nx: ",
    "size of a chunk": post_head(CHAT, "transfer-encoding: chunked") + b"1;",
}


@pytest.mark.parametrize("start", ENDLESS.values(), ids=ENDLESS.keys())
async def test_what_has_no_end_is_not_gathered(start: bytes) -> None:
    """The server gives up, rather than the client that sends it."""
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        await connection.send(start)
        more = b"y" * (1 << 16) if start.strip().endswith((b":", b"/", b";")) else b"x: y\r\n" * (1 << 13)
        with pytest.raises(ConnectionError):
            await send_often(connection, more, 3 * LARGEST_HEAD // len(more))
        connection.reset()


async def send_often(connection: Connection, content: bytes, times: int) -> None:
    for _ in range(times):
        await connection.send(content)


UPGRADES = {
    "HTTP/2": ["connection: Upgrade, HTTP2-Settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__"],
    "WebSocket": ["connection: upgrade", "upgrade: websocket"],
}


@pytest.mark.parametrize("upgrade", UPGRADES.values(), ids=UPGRADES.keys())
@pytest.mark.parametrize("size", [1, 50, 10_000], ids=["bytes", "pieces", "whole"])
async def test_who_would_rather_go_on_in_another_protocol_is_answered_in_this_one(
    upgrade: list[str], size: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Java's HTTP client, for one, asks in every request."""
    body = json.dumps(question(CHAT)).encode()
    request = post_head(CHAT, f"content-length: {len(body)}", *upgrade) + body
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        for _ in range(2):
            for start in range(0, len(request), size):
                await connection.send(request[start : start + size])
            assert b" 200 " in await connection.read_until(b"\r\n\r\n")
            await connection.read_until(b"}")
        await connection.close()
    assert not caplog.records


async def test_many_upgrades_at_once() -> None:
    request = b"GET /health HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        await connection.send(request * 2000)
        for _ in range(2000):
            assert b" 200 " in await connection.read_until(b"\r\n\r\n")
        await connection.close()


async def test_nobody_is_connected_elsewhere() -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        await connection.send(b"CONNECT /health HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
        assert b" 405 " in await connection.read_until(b"\r\n\r\n")
        await connection.close()


async def test_what_is_compressed_is_no_json() -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address, client_at(address) as client:
        content = gzip.compress(json.dumps(question(CHAT)).encode())
        headers = {"content-type": "application/json", "content-encoding": "gzip"}
        assert "JSON" in error_of(await client.post(CHAT, content=content, headers=headers), 400)["message"]


async def test_unknown_route_and_wrong_method() -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address, client_at(address) as client:
        error_of(await client.get("/nothing"), 404, "NotFoundError")
        error_of(await client.get(CHAT), 405, "MethodNotAllowedError")


async def test_a_connection_serves_on_after_errors() -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address, client_at(address) as client:
        for _ in range(3):
            error_of(await client.post(CHAT, content=b"{", headers={"content-type": "application/json"}), 400)
            error_of(await client.post("/nothing", json={}), 404, "NotFoundError")
            assert (await client.post(CHAT, json=question(CHAT, stream=True))).status_code == 200
