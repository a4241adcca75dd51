"""Nobody has the event loop for long: what is large is read and encoded beside it."""

import asyncio
import contextlib
import json
import random
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from litestar import Litestar

from adapters.inbound.cli.settings import HttpSettings
from adapters.outbound.byte_tokenizer.tokenizer import BYTES, ByteTokenizer
from adapters.outbound.mock_engine.scripted import ScriptedEngine
from domain.generation import TokenDelta
from domain.logprobs import WHOLE_VOCABULARY, LogprobColumns
from domain.token_text import TokenPiece
from tests.http.answers import Json, chunks
from tests.http.exchange import Exchange
from tests.http.serving import CHAT, COMPLETIONS, application, with_logprobs

GENERATE = "/inference/v1/generate"
LONGEST_S = 0.04
"""Of the processor, twice what is promised. Each of the requests below takes several times as long in one go."""

VOCABULARY = 50_000
PROMPT = 6_000
"""Tokens that are scored."""
LONG = 150_000
"""Tokens that are only read."""


class Many(ByteTokenizer):
    """Has as many entries as a real one."""

    @property
    def vocab_size(self) -> int:
        return VOCABULARY

    def piece(self, token_id: int) -> TokenPiece:
        return super().piece(token_id) if token_id < BYTES else TokenPiece.of(b" %d" % token_id)


class Longest:
    """The most of a processor that the loop's thread spent between two looks at what else there is to do."""

    seconds = 0.0


@contextlib.asynccontextmanager
async def holds() -> AsyncIterator[Longest]:
    longest = Longest()

    async def look() -> None:
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            now = time.thread_time()
            longest.seconds, last = max(longest.seconds, now - last), now

    looking = asyncio.create_task(look())
    await asyncio.sleep(0)
    try:
        yield longest
        await asyncio.sleep(0.005)  # the last of it is looked at, too
    finally:
        looking.cancel()


def rows(count: int, alternatives: int) -> LogprobColumns:
    choose = random.Random(0)
    token_ids: list[int] = []
    for _ in range(count):
        token_ids += (
            [97, *range(1, VOCABULARY)]
            if alternatives == WHOLE_VOCABULARY
            else choose.sample(range(VOCABULARY), alternatives + 1)
        )
    return LogprobColumns(len(token_ids) // count, token_ids, [-choose.random() for _ in token_ids], [1] * count)


def app(*script: TokenDelta) -> Litestar:
    return app_over(ScriptedEngine(list(script), max_model_len=LONG + 100))


def app_over(engine: ScriptedEngine) -> Litestar:
    return application(
        engine,
        settings=HttpSettings(enable_scale_out=True),
        tokenizer=Many(),
        vocab_size=VOCABULARY,
        max_logprobs=WHOLE_VOCABULARY,
    )


async def longest_hold(served: Litestar, path: str, body: Json) -> float:
    exchange, seconds = await answered(served, path, body)
    assert exchange.status == 200, exchange.received
    return seconds


async def answered(served: Litestar, path: str, body: Json) -> tuple[Exchange, float]:
    """With its longest hold."""
    content = json.dumps(body).encode()
    async with holds() as longest:
        exchange = Exchange(served, path, content)
        await asyncio.wait_for(exchange.served, 60)
    assert exchange.complete
    return exchange, longest.seconds


def prompt_of(path: str, tokens: int) -> dict[str, Any]:
    if path == CHAT:
        return {"messages": [{"role": "user", "content": "a" * (tokens - 2)}]}  # and two of the template
    return {"prompt" if path == COMPLETIONS else "token_ids": [97] * tokens}


def scored(path: str, alternatives: int) -> dict[str, Any]:
    asked = {"prompt_logprobs": alternatives}
    return {"sampling_params": asked} if path == GENERATE else asked


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, GENERATE])
async def test_scores_of_a_long_prompt(path: str) -> None:
    served = app(TokenDelta([104], prompt_logprobs=rows(PROMPT - 1, 20)))
    assert await longest_hold(served, path, prompt_of(path, PROMPT) | scored(path, 20)) < LONGEST_S


@pytest.mark.parametrize("stream", [False, True])
async def test_scores_of_an_echoed_prompt(stream: bool) -> None:
    served = app(TokenDelta([104], rows(1, 20), rows(PROMPT - 1, 20)))
    body = prompt_of(COMPLETIONS, PROMPT) | {"echo": True, "logprobs": 20, "stream": stream}
    assert await longest_hold(served, COMPLETIONS, body) < LONGEST_S


async def test_what_is_streamed_behind_many_scores_waits_for_them() -> None:
    scores = rows(PROMPT - 1, 20)
    served = app(TokenDelta([104], prompt_logprobs=scores), *[TokenDelta([105 + index]) for index in range(9)])
    body = prompt_of(GENERATE, PROMPT) | scored(GENERATE, 20) | {"stream": True}
    exchange, seconds = await answered(served, GENERATE, body)
    assert seconds < LONGEST_S
    first, *others = chunks(exchange.response)
    assert len(first["prompt_logprobs"]) == PROMPT
    assert not any("prompt_logprobs" in chunk for chunk in others)
    ids = [token_id for chunk in (first, *others) for token_id in chunk["choices"][0]["token_ids"]]
    assert ids == list(range(104, 114))


async def test_a_client_that_leaves_while_many_scores_are_encoded() -> None:
    engine = ScriptedEngine(
        [TokenDelta([104], prompt_logprobs=rows(PROMPT - 1, 20)), asyncio.Event()], max_model_len=LONG
    )
    body = prompt_of(GENERATE, PROMPT) | scored(GENERATE, 20) | {"stream": True}
    exchange = Exchange(app_over(engine), GENERATE, body)
    await exchange.until(lambda one: one.status is not None)
    exchange.leave()
    await exchange.end()
    assert exchange.received == b""
    assert len(engine.aborted) == 1


async def test_an_echo_of_many_tokens() -> None:
    body = prompt_of(COMPLETIONS, LONG) | {"echo": True}
    assert await longest_hold(app(TokenDelta([104])), COMPLETIONS, body) < LONGEST_S


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_scores_of_a_whole_vocabulary(path: str, stream: bool) -> None:
    served = app(TokenDelta([104] * 4, rows(4, WHOLE_VOCABULARY)))
    body = prompt_of(path, 10) | with_logprobs(path, WHOLE_VOCABULARY) | {"stream": stream}
    assert await longest_hold(served, path, body) < LONGEST_S


@pytest.mark.parametrize("is_part", [False, True])
async def test_scores_that_are_sent_here(is_part: bool) -> None:
    others = [{"token_id": token_id, "logprob": -0.5, "rank": token_id} for token_id in range(1, 100)]
    position = others[0] | {"top_logprobs": others}
    choice = {
        "index": 0,
        "token_ids": [1] * 2000,
        "finish_reason": "length",
        "logprobs": {"content": [position] * 2000},
    }
    name = "generate_chunk" if is_part else "generate_response"
    body = {name: {"choices": [choice]}, "stream": is_part}
    assert await longest_hold(app(TokenDelta([104])), f"{CHAT}/derender", body) < LONGEST_S


async def test_the_entries_of_many_tokens() -> None:
    body = {"prompt": "a" * LONG * 4, "return_token_strs": True}
    assert await longest_hold(app(TokenDelta([104])), "/tokenize", body) < LONGEST_S
