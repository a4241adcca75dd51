"""However an answer to several prompts ends, nothing of them is left at the engine, and each is counted once."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapters.outbound.byte_tokenizer.tokenizer import VOCAB_SIZE
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from adapters.outbound.mock_engine.scripted import Script, ScriptedEngine, Step
from application.ports.engine import EngineUnavailable
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, TokenDelta
from tests.http.answers import Json, error_of, frames_in
from tests.http.exchange import Exchange, eventually
from tests.http.serving import COMPLETIONS, application, counted, post

H = TokenDelta([104])
PROMPT_S = 1.0
"""Within this, every abort reaches the engine."""

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def asks(prompts: int, stream: bool, **fields: object) -> Json:
    return {"prompt": ["a"] * prompts, "request_id": "x", "stream": stream} | fields


def waits(*before: Step) -> list[Step]:
    """A script that comes to no end by itself."""
    return [*before, asyncio.Event()]


class TestOneFails:
    """It fails the answer, and the others are called off."""

    @STREAMED
    async def test_when_submitted(self, stream: bool) -> None:
        engine = ScriptedEngine(waits(H), waits(H), EngineUnavailable("full"))
        app = application(engine)

        error = error_of(await post(app, COMPLETIONS, asks(4, stream)), 503, "ServiceUnavailableError")

        assert error["message"] == "full"
        assert (engine.aborted, engine.running) == (["cmpl-x-0", "cmpl-x-1"], 0)
        assert await counted(app) == {"abort": 2}

    @STREAMED
    @pytest.mark.parametrize(
        ("failure", "status", "kind"),
        [
            (RequestError("not that", "seed"), 400, "BadRequestError"),
            (EngineFailure("lost"), 500, "InternalServerError"),
        ],
        ids=["refused", "failed"],
    )
    async def test_before_any_output(self, stream: bool, failure: Exception, status: int, kind: str) -> None:
        engine = ScriptedEngine(waits(), [failure], waits())
        app = application(engine)

        error = error_of(await post(app, COMPLETIONS, asks(3, stream)), status, kind)

        assert (error["message"], error["param"]) == (str(failure), getattr(failure, "param", None))
        assert sorted(engine.aborted) == ["cmpl-x-0", "cmpl-x-2"]
        assert engine.running == 0
        assert await counted(app) == {"error": 1, "abort": 2}
        assert await counted(app, "vllm:num_requests_running") == {}

    @pytest.mark.parametrize("before", [[], [H]], ids=["before its first output", "after it"])
    async def test_behind_output_of_others_in_a_stream(self, before: list[Step]) -> None:
        """An error frame, then the end; nothing that was sent is taken back."""
        gate = asyncio.Event()
        engine = ScriptedEngine(waits(H), [*before, gate, EngineFailure("lost")], waits(H, H))
        app = application(engine)
        exchange = Exchange(app, COMPLETIONS, asks(3, stream=True, stream_options={"include_usage": True}))
        await exchange.until(lambda exchange: exchange.received.count(b'"h"') == 3 + len(before))

        gate.set()
        await exchange.until(lambda exchange: exchange.complete)
        await exchange.end()

        *_, error, done = frames_in(exchange.received)
        assert done == b"data: [DONE]"
        assert json.loads(error.removeprefix(b"data: "))["error"]["message"] == "lost"
        assert exchange.received.count(b"error") == 1
        assert b'"usage"' not in exchange.received
        assert b'"finish_reason":"' not in exchange.received
        assert sorted(engine.aborted) == ["cmpl-x-0", "cmpl-x-2"]
        assert engine.running == 0
        assert await counted(app) == {"error": 1, "abort": 2}

    async def test_behind_output_of_others_not_streamed(self) -> None:
        engine = ScriptedEngine(waits(H), [H, EngineFailure("lost")], [H])
        app = application(engine)

        error_of(await post(app, COMPLETIONS, asks(3, stream=False)), 500, "InternalServerError")

        assert engine.aborted == ["cmpl-x-0"]
        assert engine.running == 0
        assert await counted(app) == {"error": 1, "abort": 1, "length": 1}

    async def test_one_that_had_ended_is_none_to_call_off(self) -> None:
        gate = asyncio.Event()
        ended: Script = [TokenDelta([104], finish_reason=FinishReason.STOP)]
        engine = ScriptedEngine(ended, [gate, EngineFailure("lost")], waits(H))
        exchange = Exchange(application(engine), COMPLETIONS, asks(3, stream=True))
        await exchange.until_received(b'"finish_reason":"stop"')
        gate.set()
        await exchange.end()
        assert engine.aborted == ["cmpl-x-2"]

    @STREAMED
    async def test_an_engine_that_dies_fails_them_all(self, stream: bool) -> None:
        engine = ScriptedEngine(waits(H), waits(H), waits())
        app = application(engine)
        exchange = Exchange(app, COMPLETIONS, asks(3, stream))
        for _ in range(3):
            await engine.next_submitted()
        if stream:
            await exchange.until(lambda exchange: exchange.received.count(b'"h"') == 2)

        engine.die()
        await exchange.end()

        assert exchange.received.count(b'"error"') == 1
        assert exchange.status == (200 if stream else 500)
        assert engine.running == 0
        assert sum((await counted(app)).values()) == 3


@asynccontextmanager
async def leaving(engine: ScriptedEngine, body: Json, **kwargs: bool) -> AsyncIterator[Exchange]:
    """The exchange, until the engine has taken all of its requests; the client has left by the end of the block.

    Then one abort for each of those reaches the engine, and nothing is left."""
    before = asyncio.all_tasks()
    app = application(engine)
    exchange = Exchange(app, COMPLETIONS, body, **kwargs)
    prompts = len(body["prompt"])
    for _ in range(prompts):
        await asyncio.wait_for(engine.next_submitted(), PROMPT_S)

    yield exchange

    async with asyncio.timeout(PROMPT_S):
        for _ in range(prompts):
            await engine.next_aborted()
    await exchange.end()
    assert sorted(engine.aborted) == [f"cmpl-x-{index}" for index in range(prompts)]
    assert engine.running == 0
    assert await counted(app) == {"abort": prompts}
    assert await counted(app, "vllm:num_requests_running") == {}
    await eventually(lambda: asyncio.all_tasks() == before)


class TestClientLeaves:
    """Case 54: one abort for each prompt."""

    @STREAMED
    async def test_before_any_output(self, stream: bool) -> None:
        async with leaving(ScriptedEngine(waits()), asks(4, stream)) as exchange:
            exchange.leave()
        assert exchange.received == b""

    @STREAMED
    async def test_while_the_engine_works(self, stream: bool) -> None:
        async with leaving(ScriptedEngine(waits(H, H)), asks(4, stream)) as exchange:
            if stream:
                await exchange.until(lambda exchange: exchange.received.count(b"data: ") >= 3)
            exchange.leave()
        assert b"[DONE]" not in exchange.received

    async def test_when_only_some_have_begun(self) -> None:
        engine = ScriptedEngine(waits(), waits(H), waits())
        async with leaving(engine, asks(3, stream=True)) as exchange:
            await exchange.until_received(b'"h"')
            exchange.leave()

    async def test_without_reading(self) -> None:
        async with leaving(ScriptedEngine(waits(H, H)), asks(4, stream=True), reads=False) as exchange:
            exchange.leave()

    async def test_while_text_is_held_back(self) -> None:
        engine = ScriptedEngine(waits(*(TokenDelta([letter]) for letter in b"abc")))
        async with leaving(engine, asks(4, stream=True, stop="abcd")) as exchange:
            exchange.leave()

    @STREAMED
    async def test_when_some_have_ended(self, stream: bool) -> None:
        engine = ScriptedEngine([H], waits(H), [H, H], waits())
        app = application(engine)
        exchange = Exchange(app, COMPLETIONS, asks(4, stream))
        for _ in range(4):
            await engine.next_submitted()
        if stream:
            await exchange.until(lambda exchange: exchange.received.count(b'"finish_reason":"length"') == 2)
        else:
            await eventually(lambda: engine.running == 2)
        exchange.leave()
        await exchange.end()
        assert sorted(engine.aborted) == ["cmpl-x-1", "cmpl-x-3"]
        assert await counted(app) == {"length": 2, "abort": 2}

    async def test_an_engine_that_always_has_a_next_token(self) -> None:
        engine = MockEngine(DeterministicModel(VOCAB_SIZE).start)
        app = application(engine)
        exchange = Exchange(app, COMPLETIONS, asks(4, stream=True, max_tokens=8000))
        await exchange.until(lambda exchange: exchange.received.count(b"data: ") >= 3)
        exchange.leave()
        await exchange.end()
        assert engine.aborts == 4
        assert await counted(app) == {"abort": 4}

    @STREAMED
    async def test_at_any_moment(self, stream: bool) -> None:
        """After so many rounds of the loop: there is none at which a request would be lost."""
        engine = ScriptedEngine(waits(H, H))
        app = application(engine)
        for rounds in range(40):
            exchange = Exchange(app, COMPLETIONS, asks(3, stream))
            for _ in range(rounds):
                await asyncio.sleep(0)
            exchange.leave()
            await exchange.end()
            assert engine.running == 0
            assert len(engine.aborted) == len(engine.submitted)
        assert engine.submitted
        assert await counted(app) == {"abort": len(engine.submitted)}


@STREAMED
async def test_server_that_stops_at_any_moment(stream: bool) -> None:
    engine = ScriptedEngine(waits(H, H))
    app = application(engine)
    for rounds in range(40):
        exchange = Exchange(app, COMPLETIONS, asks(3, stream))
        for _ in range(rounds):
            await asyncio.sleep(0)
        exchange.served.cancel()
        await asyncio.wait((exchange.served,))
        assert engine.running == 0
        assert len(engine.aborted) == len(engine.submitted)
    assert engine.submitted


async def test_slow_reader_that_stays_gets_it_all() -> None:
    engine = ScriptedEngine([H] * 20)
    app = application(engine)
    exchange = Exchange(app, COMPLETIONS, asks(3, stream=True), reads=False)
    for _ in range(3):
        await engine.next_submitted()
    exchange.read_on()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    assert exchange.received.count(b'"h"') == 60
    assert exchange.received.count(b'"finish_reason":"length"') == 3
    assert exchange.received.endswith(b"data: [DONE]\n\n")
    assert not engine.aborted
    assert await counted(app) == {"length": 3}


@STREAMED
async def test_stop_string_ends_its_own_choice_alone(stream: bool) -> None:
    gate = asyncio.Event()
    letters: list[Step] = [TokenDelta([letter]) for letter in b"one"]
    engine = ScriptedEngine(waits(*letters), [gate, H])
    exchange = Exchange(application(engine), COMPLETIONS, asks(2, stream, stop="n"))
    assert await asyncio.wait_for(engine.next_aborted(), PROMPT_S) == "cmpl-x-0"
    assert not exchange.complete
    gate.set()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    assert engine.aborted == ["cmpl-x-0"]
    assert exchange.received.count(b'"stop_reason":"n"') == 1
    assert exchange.received.count(b'"finish_reason":"length"') == 1
