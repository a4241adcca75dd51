"""Clients that leave, over real sockets: one abort reaches the engine within a second, and nothing is left."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal

import httpx
import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step
from domain.generation import TokenDelta
from tests.e2e.serving import Connection, client_at, listening, post_head
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, counted, question, with_logprobs
from tests.patience import PATIENCE_S

PROMPT_S = 1.0
"""Within this, an abort reaches the engine."""

H = TokenDelta([104])
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@asynccontextmanager
async def serving(*script: Step) -> AsyncIterator[tuple[str, ScriptedEngine]]:
    """The server's address, and the engine behind it. By the end of the block a client has left: one request, one
    abort, and the server still answers others."""
    engine = ScriptedEngine(script)
    app = application(engine)
    async with listening(app) as address:
        yield address, engine
        async with asyncio.timeout(PROMPT_S):
            await engine.next_aborted()
        assert len(engine.aborted) == len(engine.submitted) == 1
        assert engine.running == 0
        assert await counted(app) == {"abort": 1}
        assert await counted(app, "vllm:num_requests_running") == {}
        async with client_at(address) as client:
            assert (await client.get("/health")).status_code == 200
            assert 'finished_reason="abort",model_name="m"} 1.0' in (await client.get("/metrics")).text


class Progress(asyncio.Event):
    """A step that lets the engine pass, and tells how often it did."""

    def __init__(self) -> None:
        super().__init__()
        self.set()
        self.passed = 0

    async def wait(self) -> Literal[True]:
        self.passed += 1
        return await super().wait()

    async def comes_to_a_halt(self) -> int:
        """Wait until the engine is no longer asked for anything, so that it waits for the client to read."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                before = self.passed
                await asyncio.sleep(0.05)
                if before == self.passed > 0:
                    return self.passed


LEAVES: list[Callable[[Connection], None]] = [Connection.reset, lambda connection: connection._writer.close()]
LEAVING = pytest.mark.parametrize("leave", LEAVES, ids=["reset", "close"])


@by_endpoint
@STREAMED
@LEAVING
async def test_before_the_first_output(path: str, stream: bool, leave: Callable[[Connection], None]) -> None:
    async with serving(asyncio.Event(), H) as (address, engine):
        connection = await Connection.open(address)
        await connection.post(path, question(path, stream=stream))
        await engine.next_submitted()
        leave(connection)


@by_endpoint
@LEAVING
async def test_after_three_chunks(path: str, leave: Callable[[Connection], None]) -> None:
    async with serving(H, H, H, asyncio.Event(), H) as (address, _):
        connection = await Connection.open(address)
        await connection.post(path, question(path, stream=True, max_tokens=2000))
        for _ in range(3):
            assert b"data: {" in await connection.read_until(b"\n\n")
        leave(connection)


@by_endpoint
@LEAVING
async def test_reading_an_endless_answer(path: str, leave: Callable[[Connection], None]) -> None:
    async with serving(*[H] * 200_000) as (address, _):
        connection = await Connection.open(address)
        await connection.post(path, question(path, stream=True, max_tokens=2000))
        for _ in range(3):
            assert b"data: {" in await connection.read_until(b"\n\n")
        leave(connection)


@by_endpoint
@LEAVING
async def test_during_an_answer_that_is_not_streamed(path: str, leave: Callable[[Connection], None]) -> None:
    progress = Progress()
    async with serving(H, progress, H, asyncio.Event(), H) as (address, engine):
        connection = await Connection.open(address)
        await connection.post(path, question(path))
        await engine.next_submitted()
        await progress.comes_to_a_halt()
        leave(connection)


@by_endpoint
async def test_client_with_a_time_limit(path: str) -> None:
    """As a client library gives up."""
    async with serving(H, asyncio.Event(), H) as (address, _), client_at(address) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(path, json=question(path), timeout=1.0)


@by_endpoint
@LEAVING
async def test_that_stopped_reading(path: str, leave: Callable[[Connection], None]) -> None:
    """The server cannot send on: rather than gather the engine's output, it does not take it; the abort still comes."""
    progress = Progress()
    wide = TokenDelta([104] * 2000)
    script: list[Step] = [step for _ in range(2000) for step in (progress, wide)]
    async with serving(*script) as (address, _):
        connection = await Connection.open(address)
        await connection.post(path, question(path, stream=True, max_tokens=8000, return_token_ids=True))
        assert b"200 OK" in await connection.read_until(b"\r\n\r\n")
        assert await progress.comes_to_a_halt() < 2000
        leave(connection)


@by_endpoint
async def test_that_reads_slowly_gets_it_all(path: str) -> None:
    progress = Progress()
    wide = TokenDelta([104] * 2000)
    engine = ScriptedEngine([step for _ in range(800) for step in (progress, wide)])
    async with listening(application(engine)) as address:
        connection = await Connection.open(address)
        await connection.post(path, question(path, stream=True, max_tokens=8000, return_token_ids=True))
        assert await progress.comes_to_a_halt() < 800
        received = b""
        while not received.endswith(b"[DONE]\n\n"):
            received = await connection.read_until(b"\n\n")
        await connection.close()
    assert progress.passed == 800
    assert not engine.aborted


async def test_before_the_body_is_whole() -> None:
    engine = ScriptedEngine([H])
    async with listening(application(engine)) as address:
        connection = await Connection.open(address)
        await connection.send(b"%b{" % post_head(CHAT, "content-length: 100"))
        connection.reset()
        async with client_at(address) as client:
            assert (await client.post(COMPLETIONS, json=question(COMPLETIONS))).status_code == 200
    assert len(engine.submitted) == 1


async def test_every_one_of_many() -> None:
    engine = ScriptedEngine([H, asyncio.Event()])
    app = application(engine)
    count = 50
    async with listening(app) as address:
        connections = await asyncio.gather(*[Connection.open(address) for _ in range(count)])
        for index, connection in enumerate(connections):
            path = (CHAT, COMPLETIONS)[index % 2]
            await connection.post(path, question(path, stream=index % 3 > 0, **with_logprobs(path, 0)))
        for _ in range(count):
            await engine.next_submitted()
        for connection in connections:
            connection.reset()
        async with asyncio.timeout(PROMPT_S):
            for _ in range(count):
                await engine.next_aborted()
        assert engine.running == 0
        assert len(set(engine.aborted)) == count
        assert await counted(app) == {"abort": count}


async def test_server_that_stops_aborts_what_runs() -> None:
    engine = ScriptedEngine([H, asyncio.Event()])
    async with listening(application(engine)) as address:
        connections = [await Connection.open(address) for _ in range(2)]
        for connection, stream in zip(connections, (True, False), strict=True):
            await connection.post(CHAT, question(CHAT, stream=stream))
            await engine.next_submitted()
    assert engine.running == 0
    assert len(engine.aborted) == 2
    for connection in connections:
        connection.reset()


async def test_who_is_cut_off_when_the_server_stops_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    engine = ScriptedEngine([H])
    async with listening(application(engine)) as address:
        connection = await Connection.open(address)
        await connection.send(b"%b{" % post_head(CHAT, "content-length: 100"))
        async with client_at(address) as client:
            assert (await client.post(COMPLETIONS, json=question(COMPLETIONS))).status_code == 200
    await connection.read_all()
    await connection.close()
    assert "Cancel 1 running task(s)" in caplog.text
    assert not any(record.exc_info for record in caplog.records)


@by_endpoint
@LEAVING
async def test_with_another_request_sent_meanwhile(
    path: str, leave: Callable[[Connection], None], caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(*[H] * 200_000) as (address, _):
        connection = await Connection.open(address)
        await connection.post(path, question(path, stream=True, max_tokens=2000))
        await connection.send(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        for _ in range(3):
            assert b"data: {" in await connection.read_until(b"\n\n")
        leave(connection)
    assert not caplog.records


@by_endpoint
@STREAMED
@LEAVING
async def test_with_another_request_sent_to_a_slow_engine(
    path: str, stream: bool, leave: Callable[[Connection], None]
) -> None:
    """Nothing is written meanwhile, so only reading can tell."""
    progress = Progress()
    async with serving(H, progress, asyncio.Event(), H) as (address, engine):
        connection = await Connection.open(address)
        await connection.post(path, question(path, stream=stream))
        await engine.next_submitted()
        await progress.comes_to_a_halt()
        await connection.post(path, question(path, user="x" * 100_000))
        leave(connection)


async def test_that_sends_garbage_behind_its_request_is_cut_off() -> None:
    """What would answer the garbage must not stand in the answer that is under way."""
    async with serving(H, asyncio.Event(), H) as (address, _):
        connection = await Connection.open(address)
        await connection.post(COMPLETIONS, question(COMPLETIONS, stream=True))
        await connection.read_until(b"\n\n\r\n")
        await connection.send(b"\x00garbage\r\n\r\n")
        assert await connection.read_all() == b""
        await connection.close()
