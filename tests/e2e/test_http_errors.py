"""Requests that are refused before anything is made of them, over real sockets."""

import json

import pytest

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
