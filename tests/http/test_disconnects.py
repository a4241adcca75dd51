"""A client that leaves: one abort reaches the engine within a second, it is counted, and nothing is left."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step
from domain.generation import FinishReason, TokenDelta
from tests.http.exchange import Exchange
from tests.http.serving import CHAT, application, by_endpoint, counted, question, with_logprobs

PROMPT_S = 1.0
"""Within this, an abort reaches the engine."""

H = TokenDelta([104])
MODES = pytest.mark.parametrize(
    "fields",
    [{}, {"stream": True}, {"stream": True, "logprobs": None, "return_token_ids": True}],
    ids=["whole", "stream", "stream-ids"],
)


@asynccontextmanager
async def leaving(script: list[Step], path: str, fields: dict[str, Any], **kwargs: Any) -> AsyncIterator[Exchange]:
    """The exchange, until the engine has taken its request; the client has left by the end of the block."""
    before = asyncio.all_tasks()
    engine = ScriptedEngine(script)
    app = application(engine)
    exchange = Exchange(app, path, question(path, request_id="x", **fields), **kwargs)
    await asyncio.wait_for(engine.next_submitted(), PROMPT_S)

    yield exchange

    async with asyncio.timeout(PROMPT_S):
        assert await engine.next_aborted() == ("chatcmpl-x" if path == CHAT else "cmpl-x-0")
    await exchange.end()
    assert len(engine.aborted) == 1
    assert engine.running == 0
    assert await counted(app) == {"abort": 1}
    assert await counted(app, "vllm:num_requests_running") == {}
    await asyncio.sleep(0)  # what was cancelled ends in the loop's next round
    assert asyncio.all_tasks() == before


@by_endpoint
@MODES
async def test_before_the_first_output(path: str, fields: dict[str, Any]) -> None:
    async with leaving([asyncio.Event(), H], path, fields) as exchange:
        exchange.leave()
    assert exchange.status in (None, 499)
    assert exchange.received == b""


@by_endpoint
@MODES
async def test_while_the_engine_works(path: str, fields: dict[str, Any]) -> None:
    async with leaving([H, H, asyncio.Event(), H], path, fields) as exchange:
        if "stream" in fields:
            await exchange.until(lambda exchange: exchange.received.count(b"data: ") >= 2)
        exchange.leave()
    assert b"[DONE]" not in exchange.received


@by_endpoint
async def test_after_three_chunks_of_an_endless_answer(path: str) -> None:
    """The engine always has a next token at hand."""
    endless: list[Step] = [H] * 100_000
    async with leaving(endless, path, {"stream": True}) as exchange:
        await exchange.until(lambda exchange: exchange.received.count(b"data: ") >= 3)
        exchange.leave()


@by_endpoint
async def test_that_reads_nothing(path: str) -> None:
    endless: list[Step] = [H] * 100_000
    async with leaving(endless, path, {"stream": True}, reads=False) as exchange:
        exchange.leave()


@by_endpoint
async def test_that_stopped_reading(path: str) -> None:
    endless: list[Step] = [H] * 100_000
    async with leaving(endless, path, {"stream": True, **with_logprobs(path, 0)}) as exchange:
        await exchange.until_received(b"data: ")
        exchange.stop_reading()
        exchange.leave()


@by_endpoint
async def test_while_text_is_held_back(path: str) -> None:
    """Nothing is sent meanwhile, so no send tells that the client is gone."""
    letters: list[Step] = [TokenDelta([letter]) for letter in b"abcdefg"]
    async with leaving([*letters, asyncio.Event()], path, {"stream": True, "stop": "abcdefgh"}) as exchange:
        exchange.leave()


@by_endpoint
async def test_slow_reader_that_stays_gets_it_all(path: str) -> None:
    engine = ScriptedEngine([H] * 20)
    app = application(engine)
    exchange = Exchange(app, path, question(path, stream=True), reads=False)
    await engine.next_submitted()
    exchange.read_on()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    assert exchange.received.endswith(b"data: [DONE]\n\n")
    assert not engine.aborted
    assert await counted(app) == {"length": 1}


@by_endpoint
async def test_that_leaves_after_the_end(path: str) -> None:
    for stream in (False, True):
        engine = ScriptedEngine([H])
        app = application(engine)
        exchange = Exchange(app, path, question(path, stream=stream))
        await exchange.until(lambda exchange: exchange.complete)
        exchange.leave()
        await exchange.end()
        assert not engine.aborted
        assert await counted(app) == {"length": 1}


@by_endpoint
async def test_that_never_reads_the_last_of_it(path: str) -> None:
    """The engine had ended, so there is nothing to abort."""
    engine = ScriptedEngine([TokenDelta([104], finish_reason=FinishReason.STOP)])
    app = application(engine)
    exchange = Exchange(app, path, question(path, stream=True), reads=False)
    await engine.next_submitted()
    exchange.leave()
    await exchange.end()
    assert not engine.aborted
    assert engine.running == 0
    assert sum((await counted(app)).values()) == 1


async def test_before_the_body_is_whole() -> None:
    """No request is made of half a body."""
    engine = ScriptedEngine([H])
    app = application(engine)
    exchange = Exchange(app, CHAT, {})
    exchange._body = None
    exchange.leave()
    await exchange.end()
    assert not engine.submitted
    assert exchange.status in (None, 499)


@by_endpoint
async def test_others_go_on(path: str) -> None:
    gate = asyncio.Event()
    engine = ScriptedEngine([H, gate, H])
    app = application(engine)
    body = question(path, stream=True)
    first, second = Exchange(app, path, body), Exchange(app, path, body)
    for exchange in (first, second):
        await exchange.until_received(b"h")
    first.leave()
    await asyncio.wait_for(engine.next_aborted(), PROMPT_S)

    gate.set()
    await second.until_received(b"[DONE]")

    await first.end()
    await second.end()
    assert await counted(app) == {"abort": 1, "length": 1}


@by_endpoint
async def test_stop_string_aborts_and_is_no_abort(path: str) -> None:
    """The engine goes on unless told; the answer ended by itself."""
    engine = ScriptedEngine([*[TokenDelta([letter]) for letter in b"one two"], asyncio.Event()])
    app = application(engine)
    for stream in (False, True):
        exchange = Exchange(app, path, question(path, stop="tw", stream=stream))
        await exchange.until(lambda exchange: exchange.complete)
        await asyncio.wait_for(engine.next_aborted(), PROMPT_S)
        await exchange.end()
    assert len(engine.aborted) == 2
    assert engine.running == 0
    assert await counted(app) == {"stop": 2}


@by_endpoint
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_server_that_stops(path: str, stream: bool) -> None:
    """An exchange that is cancelled leaves nothing at the engine, wherever it was."""
    scripts: list[list[Step]] = [[asyncio.Event()], [H, asyncio.Event()]]
    for script in scripts:
        engine = ScriptedEngine(script)
        exchange = Exchange(application(engine), path, question(path, stream=stream))
        await engine.next_submitted()
        if stream and len(script) > 1:
            await exchange.until_received(b"h")
        exchange.served.cancel()
        await asyncio.wait((exchange.served,))
        assert engine.running == 0
        assert len(engine.aborted) == 1


@by_endpoint
async def test_server_that_stops_at_any_moment(path: str) -> None:
    """Cancelled after so many rounds of the loop: there is none at which the engine's request would be lost."""
    engine = ScriptedEngine([H, H, asyncio.Event()])
    app = application(engine)
    for stream in (False, True):
        for rounds in range(40):
            exchange = Exchange(app, path, question(path, stream=stream))
            for _ in range(rounds):
                await asyncio.sleep(0)
            exchange.served.cancel()
            await asyncio.wait((exchange.served,))
            assert engine.running == 0
            assert len(engine.aborted) == len(engine.submitted)
    assert engine.submitted


@by_endpoint
async def test_client_that_leaves_at_any_moment(path: str) -> None:
    engine = ScriptedEngine([H, H, asyncio.Event()])
    app = application(engine)
    for stream in (False, True):
        for rounds in range(40):
            exchange = Exchange(app, path, question(path, stream=stream))
            for _ in range(rounds):
                await asyncio.sleep(0)
            exchange.leave()
            await exchange.end()
            assert engine.running == 0
            assert len(engine.aborted) == len(engine.submitted)
    assert engine.submitted
    assert await counted(app) == {"abort": len(engine.submitted)}
