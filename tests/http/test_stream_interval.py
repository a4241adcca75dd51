"""`stream_interval`: tokens are gathered before they are sent, and nothing of them is lost or late."""

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step, steps
from domain.errors import EngineFailure
from domain.generation import FinishReason, TokenDelta
from tests.http.answers import Json, answer, answers, chunks, frames
from tests.http.exchange import Exchange
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, counted, post, question, with_logprobs

TEXT = b"abcdefgh"


def texts(stream: list[Json], index: int = 0) -> list[str]:
    """Of the chunks of one choice, less that of its role."""
    choices = [choice for chunk in stream for choice in chunk["choices"] if choice["index"] == index]
    if "delta" in choices[0]:
        return [choice["delta"]["content"] for choice in choices if "role" not in choice["delta"]]
    return [choice["text"] for choice in choices]


async def sent(path: str, script: list[Any], **fields: Any) -> list[str]:
    app = application(ScriptedEngine(script))
    return texts(chunks(await post(app, path, question(path, stream=True, **fields))))


@by_endpoint
@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (None, list("abcdefgh")),
        (1, list("abcdefgh")),
        (2, ["a", "bc", "de", "fg", "h"]),
        (3, ["a", "bcd", "efg", "h"]),
        (7, ["a", "bcdefgh"]),
        (8, ["a", "bcdefgh"]),
        (2**63 - 1, ["a", "bcdefgh"]),
    ],
)
async def test_the_first_at_once_then_so_many_at_a_time(path: str, interval: int | None, expected: list[str]) -> None:
    assert await sent(path, steps(*TEXT), stream_interval=interval) == expected


@by_endpoint
async def test_steps_of_several_tokens_are_not_cut(path: str) -> None:
    script = steps(*TEXT, tokens_per_step=3)
    assert await sent(path, script, stream_interval=2) == ["abc", "def", "gh"]
    assert await sent(path, script, stream_interval=4) == ["abc", "defgh"]


@by_endpoint
async def test_it_is_for_streams(path: str) -> None:
    app = application(ScriptedEngine(steps(*TEXT)))
    assert answer(await post(app, path, question(path, stream_interval=3))).text == "abcdefgh"


@by_endpoint
async def test_it_counts_for_each_choice(path: str) -> None:
    app = application(ScriptedEngine(steps(*b"abcde"), steps(*b"vwxyz")))
    stream = chunks(await post(app, path, question(path, stream=True, n=2, stream_interval=2)))
    assert [texts(stream, index) for index in (0, 1)] == [["a", "bc", "de"], ["v", "wx", "yz"]]


@by_endpoint
@settings(max_examples=25)
@given(
    text=st.text(alphabet="aé🎉.", min_size=1, max_size=8),
    per_step=st.integers(1, 4),
    interval=st.integers(1, 6),
    alternatives=st.integers(0, 2),
    stop=st.sampled_from([None, ".", "é🎉", "zz"]),
)
async def test_the_answer_is_the_same(
    path: str, text: str, per_step: int, interval: int, alternatives: int, stop: str | None
) -> None:
    script = steps(*text.encode(), alternatives=b"xy", tokens_per_step=per_step)
    body = question(path, stop=stop, return_token_ids=True, **with_logprobs(path, alternatives))
    app = application(ScriptedEngine(script))
    gathered = {"stream": True, "stream_options": {"include_usage": True}, "stream_interval": interval}
    assert answer(await post(app, path, body | gathered)) == answer(await post(app, path, body))


@by_endpoint
async def test_continuous_usage_counts_what_was_sent(path: str) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    app = application(ScriptedEngine(steps(*b"abcdef")))
    stream = chunks(await post(app, path, question(path, stream=True, stream_interval=3, stream_options=options)))
    before = [0] if path == CHAT else []
    assert [chunk["usage"]["completion_tokens"] for chunk in stream] == [*before, 1, 4, 6, 6]


@by_endpoint
async def test_the_first_does_not_wait_for_more(path: str) -> None:
    go_on = asyncio.Event()
    script: list[Step] = [TokenDelta([97]), go_on, TokenDelta([98])]
    exchange = Exchange(application(ScriptedEngine(script)), path, question(path, stream=True, stream_interval=9))
    await exchange.until_received(b'"a"')
    go_on.set()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    assert b'"b"' in exchange.received


@by_endpoint
async def test_the_group_is_sent_when_it_is_full(path: str) -> None:
    """Not when the token after it comes."""
    go_on = asyncio.Event()
    script: list[Step] = [*map(TokenDelta, ([97], [98], [99])), go_on, TokenDelta([100])]
    exchange = Exchange(application(ScriptedEngine(script)), path, question(path, stream=True, stream_interval=2))
    await exchange.until_received(b'"bc"')
    go_on.set()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()


@by_endpoint
async def test_a_stop_string_ends_it_at_once(path: str) -> None:
    """The engine, which does not know of the string, is told before it brings more."""
    script: list[Step] = [*map(TokenDelta, ([97], [98], [33], [99])), asyncio.Event()]
    engine = ScriptedEngine(script)
    app = application(engine)
    body = question(path, stream=True, stream_interval=100, stop="!", return_token_ids=True)
    shown = answer(await asyncio.wait_for(post(app, path, body), 5))
    assert (shown.text, shown.token_ids, shown.stop_reason) == ("ab", [97, 98, 33], "!")
    assert len(engine.aborted) == 1
    assert await counted(app) == {"stop": 1}


@by_endpoint
async def test_a_failure_comes_after_what_was_gathered(path: str) -> None:
    script: list[Step] = [*map(TokenDelta, ([97], [98], [99])), EngineFailure("It broke.")]
    app = application(ScriptedEngine(script))
    *_, gathered, error, done = frames(await post(app, path, question(path, stream=True, stream_interval=9)))
    assert b'"bc"' in gathered
    assert b"It broke." in error
    assert done == b"data: [DONE]"
    assert await counted(app) == {"error": 1}


@by_endpoint
async def test_a_failure_of_one_of_several(path: str) -> None:
    script: list[Step] = [*map(TokenDelta, ([97], [98], [99])), EngineFailure("It broke.")]
    app = application(ScriptedEngine(script, [TokenDelta([120]), asyncio.Event()]))
    *_, gathered, error, _ = frames(await post(app, path, question(path, stream=True, stream_interval=9, n=2)))
    assert b'"bc"' in gathered
    assert b"It broke." in error
    assert await counted(app) == {"error": 1, "abort": 1}


@by_endpoint
async def test_a_failure_of_one_that_has_gathered_nothing_comes_after_what_others_have(path: str) -> None:
    fails, nobody = asyncio.Event(), asyncio.Event()
    scripts: list[list[Step]] = [[*map(TokenDelta, ([text], [text + 1], [text + 2])), nobody] for text in (104, 120)]
    engine = ScriptedEngine(scripts[0], [TokenDelta([97]), fails, EngineFailure("It broke.")], scripts[1])
    app = application(engine)
    exchange = Exchange(app, path, question(path, stream=True, stream_interval=9, n=3))
    await exchange.until(lambda exchange: all(first in exchange.received for first in (b'"a"', b'"h"', b'"x"')))
    fails.set()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    *_, one, other, error, done = frames(exchange.response)
    assert b'"ij"' in one
    assert b'"yz"' in other
    assert b"It broke." in error
    assert done == b"data: [DONE]"
    assert await counted(app) == {"error": 1, "abort": 2}


@by_endpoint
@pytest.mark.parametrize("gathering", [0, 1, 2])
async def test_a_dead_engine_takes_nothing_along_that_any_choice_has_gathered(path: str, gathering: int) -> None:
    nobody = asyncio.Event()
    scripts: list[list[Step]] = [[TokenDelta([text]), nobody] for text in b"abc"]
    scripts[gathering].insert(1, TokenDelta([122]))
    engine = ScriptedEngine(*scripts)
    exchange = Exchange(application(engine), path, question(path, stream=True, stream_interval=9, n=3))
    await exchange.until(lambda exchange: all(first in exchange.received for first in (b'"a"', b'"b"', b'"c"')))
    engine.die()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    *_, gathered, error, _ = frames(exchange.response)
    assert b'"z"' in gathered
    assert b"died" in error


@by_endpoint
async def test_a_failure_with_nothing_gathered(path: str) -> None:
    app = application(ScriptedEngine([TokenDelta([97]), EngineFailure("It broke.")]))
    *_, first, error, _ = frames(await post(app, path, question(path, stream=True, stream_interval=9)))
    assert b'"a"' in first
    assert b"It broke." in error


@by_endpoint
async def test_a_client_that_leaves_meanwhile(path: str) -> None:
    script: list[Step] = [*map(TokenDelta, ([97], [98], [99])), asyncio.Event()]
    engine = ScriptedEngine(script)
    app = application(engine)
    exchange = Exchange(app, path, question(path, stream=True, stream_interval=9))
    await exchange.until_received(b'"a"')
    exchange.leave()
    await asyncio.wait_for(engine.next_aborted(), 1.0)
    await exchange.end()
    assert b'"bc"' not in exchange.received
    assert await counted(app) == {"abort": 1}


async def test_the_prompt_alone() -> None:
    app = application(ScriptedEngine(steps(104)))
    for prompts in (["ab"], ["ab", "c"]):
        body = {"prompt": prompts, "echo": True, "max_tokens": 0, "stream": True, "stream_interval": 3}
        assert [one.text for one in answers(await post(app, COMPLETIONS, body))] == prompts


@by_endpoint
async def test_an_abort_by_the_engine_ends_a_group(path: str) -> None:
    script = [*map(TokenDelta, ([97], [98])), TokenDelta([], finish_reason=FinishReason.ABORT)]
    app = application(ScriptedEngine(script))
    shown = answer(await post(app, path, question(path, stream=True, stream_interval=9)))
    assert (shown.text, shown.finish_reason) == ("ab", "abort")
