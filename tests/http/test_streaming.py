"""A stream's chunks put together are the answer that is not streamed, however many tokens a step brings."""

import asyncio
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import FinishReason, TokenDelta
from tests.http.answers import Answer, answer
from tests.http.exchange import Exchange
from tests.http.serving import ENDPOINTS, application, by_endpoint, post, question, with_logprobs
from tests.http.vocabulary import (
    EOS,
    HARD_ENTRIES,
    LACKING,
    LETTER_AND_LEAD,
    PARTY,
    REPLACEMENT,
    ROLE,
    TAIL_AND_LETTER,
    HardTokenizer,
    byte_tokens,
)

ALTERNATIVES = (65, 0xF0, EOS)
USAGE = {"stream_options": {"include_usage": True}}


class Output(NamedTuple):
    """What an engine generates, and what the request says of it."""

    token_ids: list[int]
    fields: dict[str, Any]
    finish_reason: FinishReason = FinishReason.LENGTH

    async def answers(self, path: str, tokens_per_step: int) -> tuple[Answer, Answer]:
        """The same request, not streamed and streamed."""
        script = steps(
            *self.token_ids,
            alternatives=ALTERNATIVES,
            tokens_per_step=tokens_per_step,
            finish_reason=self.finish_reason,
        )
        app = application(ScriptedEngine(script), tokenizer=HardTokenizer())
        body = question(path, return_token_ids=True, **with_logprobs(path, 3)) | self.fields
        return answer(await post(app, path, body)), answer(await post(app, path, body | {"stream": True} | USAGE))


HARD = {
    "emoji in bytes": Output(byte_tokens("né 🎉 世界"), {}),
    "emoji and a stop string": Output(byte_tokens("né 🎉 世界"), {"stop": ["🎉 世"]}),
    "stop string over several tokens": Output(byte_tokens("one two three"), {"stop": ["two"]}),
    "stop string that nearly matches": Output(byte_tokens("aab aac"), {"stop": ["aaac", "b aad"]}),
    "stop string in the last token": Output(byte_tokens("one two"), {"stop": ["two"]}, FinishReason.STOP),
    "two stop strings": Output(byte_tokens("hello"), {"stop": ["llo", "ell"]}),
    "stop string unarmed at first": Output(byte_tokens("ab ab ab"), {"stop": ["ab"], "min_tokens": 4}),
    "ended by the end token": Output([*byte_tokens("bye"), EOS], {}, FinishReason.STOP),
    "end token shown": Output([*byte_tokens("bye"), EOS], {"skip_special_tokens": False}, FinishReason.STOP),
    "special token inside": Output([104, ROLE, 105], {}),
    "special token shown inside": Output([104, ROLE, 105], {"skip_special_tokens": False}),
    "special token inside a character": Output([0xF0, 0x9F, ROLE, 0x8E, 0x89], {}),
    "special token breaks a character": Output([0xF0, 0x9F, ROLE, 0x8E, 0x89], {"skip_special_tokens": False}),
    "broken character": Output([0xF0, 0x9F, 98, 0x80, 99], {}),
    "ends inside a character": Output([97, 0xF0, 0x9F], {}),
    "end token inside a character": Output([97, 0xF0, 0x9F, EOS], {}, FinishReason.STOP),
    "entries that cross characters": Output([PARTY, LETTER_AND_LEAD, TAIL_AND_LETTER, REPLACEMENT, LACKING, 33], {}),
}


@by_endpoint
@pytest.mark.parametrize("output", HARD.values(), ids=HARD.keys())
async def test_hard_tokens(path: str, output: Output) -> None:
    expected, streamed = await output.answers(path, 1)
    assert streamed == expected
    for tokens_per_step in (2, 3, len(output.token_ids)):
        assert await output.answers(path, tokens_per_step) == (expected, expected)


OUTPUTS = st.builds(
    Output,
    st.lists(
        st.one_of(
            st.sampled_from([*HARD_ENTRIES, LACKING, EOS, ROLE, *byte_tokens("abé🎉")]),
            st.integers(0, 255),
        ),
        min_size=1,
        max_size=12,
    ),
    st.fixed_dictionaries(
        {
            "stop": st.lists(st.text("abé🎉\ufffd", min_size=1, max_size=3), max_size=2),
            "min_tokens": st.integers(0, 3),
            "skip_special_tokens": st.booleans(),
            "return_tokens_as_token_ids": st.booleans(),
        }
    ),
    st.sampled_from([FinishReason.LENGTH, FinishReason.STOP]),
)


@given(path=st.sampled_from(ENDPOINTS), output=OUTPUTS, tokens_per_step=st.integers(2, 5))
@settings(max_examples=100)
async def test_any_tokens(path: str, output: Output, tokens_per_step: int) -> None:
    expected, streamed = await output.answers(path, 1)
    assert streamed == expected
    assert await output.answers(path, tokens_per_step) == (expected, expected)

    assert expected.token_ids == output.token_ids[: len(expected.tokens)]
    assert len(expected.tokens) == len(expected.token_ids)
    assert expected.usage is not None
    assert expected.usage["completion_tokens"] == len(expected.tokens)
    for stop in output.fields["stop"]:
        assert stop not in expected.text or output.fields["min_tokens"]


@by_endpoint
async def test_each_step_is_sent_as_it_comes(path: str) -> None:
    """A client sees a step before the engine makes the next one."""
    gates = [asyncio.Event() for _ in range(3)]
    engine = ScriptedEngine([gates[0], TokenDelta([97]), gates[1], TokenDelta([98]), gates[2], TokenDelta([99])])
    exchange = Exchange(application(engine), path, question(path, stream=True))
    await engine.next_submitted()
    assert exchange.received == b""
    for gate, letter in zip(gates, (b"a", b"b", b"c"), strict=True):
        gate.set()
        await exchange.until_received(b'"%b"' % letter)
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    assert exchange.received.endswith(b"data: [DONE]\n\n")


@by_endpoint
async def test_rows_do_not_wait_for_held_text(path: str) -> None:
    """Contract 7.3: text that can become a stop string is held back, the rows of its tokens are not."""
    gate = asyncio.Event()
    first, *others = steps(*b"abc!")
    engine = ScriptedEngine([first, gate, *others])
    body = question(path, stream=True, stop=["abcd"], **with_logprobs(path, 0))
    exchange = Exchange(application(engine), path, body)
    await exchange.until_received(b'"a"')
    assert b'"finish_reason":null' in exchange.received
    gate.set()
    await exchange.until_received(b'"abc!"')
    await exchange.end()


@by_endpoint
async def test_ids_do_not_wait_for_held_text(path: str) -> None:
    gate = asyncio.Event()
    engine = ScriptedEngine([TokenDelta([97]), TokenDelta([98]), gate, TokenDelta([99])])
    body = question(path, stream=True, stop=["abcd"], return_token_ids=True)
    exchange = Exchange(application(engine), path, body)
    await exchange.until_received(b'"token_ids":[97]')
    await exchange.until_received(b'"token_ids":[98]')
    assert b'"a' not in exchange.received.replace(b'"assistant"', b"")
    gate.set()
    await exchange.until_received(b'"abc"')
    await exchange.end()
