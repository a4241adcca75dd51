"""A list of prompts: a choice for each, as if it had been asked alone (contract 5.4, 6.1, 6.3 and 7.3)."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar import Litestar
from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step, steps
from domain.generation import FinishReason, TokenDelta
from domain.logprobs import LogprobColumns
from tests.http.answers import Answer, Json, answer, answers, chunks, error_of
from tests.http.exchange import Exchange
from tests.http.serving import COMPLETIONS, application, counted, post
from tests.http.vocabulary import EOS, HARD_ENTRIES, LACKING, PARTY, ROLE, HardTokenizer, byte_tokens

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
CONTINUOUS = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
PROMPTS = pytest.mark.parametrize(
    "prompts", [["ab", "cde", "f"], [[97, 98], [99, 100, 101], [102]]], ids=["texts", "ids"]
)


def behind(prompt: str | list[int], *token_ids: int, **kwargs: Any) -> list[TokenDelta]:
    """These tokens behind a prompt that is scored too; beside every token stands `~`."""
    ids = list(prompt.encode()) if isinstance(prompt, str) else prompt
    first, *others = steps(*token_ids, alternatives=[ord("~")], **kwargs)
    columns = LogprobColumns(
        2,
        [shown for token_id in ids[1:] for shown in (token_id, ord("~"))],
        [-0.5, -0.25] * len(ids[1:]),
        [2] * len(ids[1:]),
    )
    return [replace(first, prompt_logprobs=columns), *others]


def three() -> Litestar:
    """Answers `h`, `ij` and `klm`, in one, two and two steps, to the prompts of PROMPTS."""
    return application(
        ScriptedEngine(
            behind("ab", *b"h"),
            behind("cde", *b"ij"),
            behind("f", *b"klm", tokens_per_step=2, finish_reason=FinishReason.STOP, stop_reason=109),
        )
    )


@PROMPTS
@STREAMED
async def test_choices_come_in_the_order_of_the_prompts(prompts: list[Any], stream: bool) -> None:
    body = {"prompt": prompts, "stream": stream}
    found = answers(await post(three(), COMPLETIONS, body))
    assert [(one.text, one.finish_reason, one.stop_reason) for one in found] == [
        ("h", "length", None),
        ("ij", "length", None),
        ("kl", "stop", 109),
    ]


@PROMPTS
async def test_usage_is_the_sum(prompts: list[Any]) -> None:
    expected = {"prompt_tokens": 6, "total_tokens": 12, "completion_tokens": 6}
    for fields in ({}, USAGE, CONTINUOUS):
        found = answers(await post(three(), COMPLETIONS, {"prompt": prompts} | fields))
        assert [one.usage for one in found] == [expected] * 3


@PROMPTS
@STREAMED
async def test_token_ids_of_each(prompts: list[Any], stream: bool) -> None:
    body = {"prompt": prompts, "return_token_ids": True, "stream": stream}
    found = answers(await post(three(), COMPLETIONS, body))
    assert [one.prompt_token_ids for one in found] == [[97, 98], [99, 100, 101], [102]]
    assert [one.token_ids for one in found] == [list(b"h"), list(b"ij"), list(b"klm")]


@PROMPTS
@STREAMED
async def test_offsets_of_each_start_at_nought(prompts: list[Any], stream: bool) -> None:
    body = {"prompt": prompts, "logprobs": 1, "stream": stream}
    found = answers(await post(three(), COMPLETIONS, body))
    assert [one.logprobs and one.logprobs["text_offset"] for one in found] == [[0], [0, 1], [0, 1, 2]]
    assert [one.tokens for one in found] == [list("h"), list("ij"), list("klm")]


@PROMPTS
@STREAMED
async def test_each_is_echoed_with_its_own_rows(prompts: list[Any], stream: bool) -> None:
    body = {"prompt": prompts, "logprobs": 1, "echo": True, "stream": stream}
    found = answers(await post(three(), COMPLETIONS, body))
    assert [one.text for one in found] == ["abh", "cdeij", "fkl"]
    assert [one.tokens for one in found] == [list("abh"), list("cdeij"), list("fklm")]
    assert [one.logprobs and one.logprobs["text_offset"] for one in found] == [[0, 1, 2], [0, 1, 2, 3, 4], [0, 1, 2, 3]]
    assert [one.logprobs and one.logprobs["token_logprobs"] for one in found] == [
        [None, -0.5, -0.25],
        [None, -0.5, -0.5, -0.25, -0.25],
        [None, -0.25, -0.25, -0.25],
    ]


@PROMPTS
@STREAMED
@pytest.mark.parametrize("logprobs", [None, 0, 1])
async def test_nothing_but_the_prompts(prompts: list[Any], stream: bool, logprobs: int | None) -> None:
    """Contract 6.3, for each."""
    fields = {"prompt": prompts, "max_tokens": 0, "echo": True, "logprobs": logprobs, "return_token_ids": True}
    app = three()

    found = answers(await post(app, COMPLETIONS, fields | (USAGE if stream else {})))

    assert [(one.text, one.finish_reason, one.stop_reason, one.token_ids) for one in found] == [
        (text, "length", None, []) for text in ("ab", "cde", "f")
    ]
    assert [one.usage for one in found] == [{"prompt_tokens": 6, "total_tokens": 6, "completion_tokens": 0}] * 3
    if logprobs is None:
        assert [one.logprobs for one in found] == [None] * 3
    else:
        assert [one.tokens for one in found] == [list("ab"), list("cde"), list("f")]
    assert await counted(app) == {"length": 3}


@PROMPTS
async def test_prompt_logprobs_of_each(prompts: list[Any]) -> None:
    body = (await post(three(), COMPLETIONS, {"prompt": prompts, "prompt_logprobs": 0})).json()
    assert [[row and list(row) for row in choice["prompt_logprobs"]] for choice in body["choices"]] == [
        [None, ["98"]],
        [None, ["100"], ["101"]],
        [None],
    ]


@STREAMED
async def test_the_rule_holds_for_all(stream: bool) -> None:
    for flag, field in ((True, None), (False, True)):
        engine = ScriptedEngine(behind("ab", 104), behind("cd", 105))
        body = {"prompt": ["ab", "cd"], "echo": True, "logprobs": 1, "return_tokens_as_token_ids": field}
        found = answers(await post(application(engine, flag=flag), COMPLETIONS, body | {"stream": stream}))
        assert [one.tokens for one in found] == [
            ["token_id:97", "token_id:98", "token_id:104"],
            ["token_id:99", "token_id:100", "token_id:105"],
        ]


@STREAMED
async def test_each_has_a_request_of_its_own(stream: bool) -> None:
    engine = ScriptedEngine(steps(104))
    body = {"prompt": ["a", "b", "a"], "request_id": "x", "stream": stream, "max_tokens": 5, "seed": 3}
    await post(application(engine), COMPLETIONS, body)
    assert [request.request_id for request in engine.submitted] == ["cmpl-x-0", "cmpl-x-1", "cmpl-x-2"]
    assert [bytes(request.prompt_token_ids) for request in engine.submitted] == [b"a", b"b", b"a"]
    assert {(request.sampling.max_tokens, request.sampling.seed) for request in engine.submitted} == {(5, 3)}


@pytest.mark.parametrize("prompt", [["ab"], [[97, 98]]], ids=["text", "ids"])
@STREAMED
async def test_a_list_of_one_is_like_its_only_prompt(prompt: list[Any], stream: bool) -> None:
    fields = {"echo": True, "logprobs": 1, "return_token_ids": True, "stream": stream}
    app = application(ScriptedEngine(behind("ab", *b"hi")))
    listed, alone = [answer(await post(app, COMPLETIONS, {"prompt": sent} | fields)) for sent in (prompt, prompt[0])]
    assert listed == alone


async def test_as_many_as_vllm_takes() -> None:
    found = answers(await post(application(ScriptedEngine(steps(104))), COMPLETIONS, {"prompt": ["a"] * 1024}))
    assert len(found) == 1024


@STREAMED
@pytest.mark.parametrize("bad", [[261], [48] * 10], ids=["out of vocabulary", "too long"])
async def test_one_that_cannot_be_served_is_told_before_any_runs(bad: list[int], stream: bool) -> None:
    engine = ScriptedEngine(steps(104), max_model_len=10)
    body = {"prompt": [[97], [98], bad], "max_tokens": 1, "stream": stream}
    assert error_of(await post(application(engine), COMPLETIONS, body), 400)["param"] == "prompt"
    assert not engine.submitted


HARD: list[tuple[list[int], Json]] = [
    (byte_tokens("né 🎉 世界"), {}),
    (byte_tokens("one two three"), {"stop": ["two", "né"]}),
    ([0xF0, 0x9F, ROLE, 0x8E, 0x89, PARTY], {"skip_special_tokens": False}),
    ([97, 0xF0, 0x9F], {}),
]


async def alone_and_together(
    outputs: list[list[int]], tokens_per_step: list[int], fields: Json
) -> tuple[list[Answer], list[Answer], list[Answer]]:
    """The same prompts one by one, together, and together in a stream; each without usage, which is the sum."""
    prompts = [[97, 0xC3], [98], byte_tokens("né")][: len(outputs)]
    scripts = [
        behind(prompt, *ids, tokens_per_step=count)
        for prompt, ids, count in zip(prompts, outputs, tokens_per_step, strict=True)
    ]
    body = {"echo": True, "logprobs": 1, "return_token_ids": True} | fields

    async def asked(*scripts: list[TokenDelta], prompt: Any, **more: Any) -> list[Answer]:
        app = application(ScriptedEngine(*scripts), tokenizer=HardTokenizer())
        return [
            one._replace(usage=None) for one in answers(await post(app, COMPLETIONS, body | {"prompt": prompt} | more))
        ]

    alone = [(await asked(script, prompt=prompt))[0] for script, prompt in zip(scripts, prompts, strict=True)]
    return alone, await asked(*scripts, prompt=prompts), await asked(*scripts, prompt=prompts, stream=True)


@pytest.mark.parametrize(("tokens", "fields"), HARD)
@pytest.mark.parametrize("echo", [True, False])
async def test_each_is_as_if_asked_alone(tokens: list[int], fields: Json, echo: bool) -> None:
    alone, together, streamed = await alone_and_together(
        [tokens, tokens[::-1], [*tokens, EOS]], [1, 2, 3], fields | {"echo": echo}
    )
    assert together == alone
    assert streamed == alone


TOKENS = st.lists(
    st.one_of(st.sampled_from([*HARD_ENTRIES, LACKING, EOS, ROLE]), st.integers(0, 255)), min_size=1, max_size=8
)


@given(
    outputs=st.lists(st.tuples(TOKENS, st.integers(1, 4)), min_size=2, max_size=3),
    fields=st.fixed_dictionaries(
        {"stop": st.lists(st.text("abé🎉\ufffd", min_size=1, max_size=2), max_size=2), "echo": st.booleans()}
    ),
)
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
async def test_any_of_them_is(outputs: list[tuple[list[int], int]], fields: Json) -> None:
    alone, together, streamed = await alone_and_together(
        [ids for ids, _ in outputs], [count for _, count in outputs], fields
    )
    assert together == alone
    assert streamed == alone


class TestStreamed:
    """Chunks of all choices as the engine brings them, and one end."""

    async def test_chunks_come_as_the_engine_brings_them(self) -> None:
        gates = [asyncio.Event() for _ in range(3)]
        first: list[Step] = [gates[0], TokenDelta([97]), gates[2], TokenDelta([98])]
        second: list[Step] = [TokenDelta([120]), gates[1], TokenDelta([121])]
        exchange = Exchange(
            application(ScriptedEngine(first, second)), COMPLETIONS, {"prompt": ["p", "q"], "stream": True}
        )
        for letter, gate in zip("xayb", [*gates, None], strict=True):
            await exchange.until_received(b'"text":"%b"' % letter.encode())
            if gate:
                gate.set()
        await exchange.until(lambda exchange: exchange.complete)
        await exchange.end()

        *found, done = exchange.received[:-2].split(b"\n\n")
        shown = [json.loads(frame.removeprefix(b"data: "))["choices"][0] for frame in found]
        assert [(choice["index"], choice["text"]) for choice in shown] == [(1, "x"), (0, "a"), (1, "y"), (0, "b")]
        assert [choice["finish_reason"] for choice in shown] == [None, None, "length", "length"]
        assert done == b"data: [DONE]"

    async def test_the_first_chunk_of_each_has_its_prompt_and_its_first_output(self) -> None:
        body = {"prompt": ["ab", "cde", "f"], "echo": True, "logprobs": 0, "stream": True}
        firsts: dict[int, Json] = {}
        for chunk in chunks(await post(three(), COMPLETIONS, body)):
            [choice] = chunk["choices"]
            firsts.setdefault(choice["index"], choice)
            assert (choice["prompt_token_ids"] is not None) is (firsts[choice["index"]] is choice)
        assert {index: choice["text"] for index, choice in firsts.items()} == {0: "abh", 1: "cdei", 2: "fkl"}
        assert {index: choice["logprobs"]["tokens"] for index, choice in firsts.items()} == {
            0: list("abh"),
            1: list("cdei"),
            2: list("fkl"),
        }
        assert {index: choice["prompt_token_ids"] for index, choice in firsts.items()} == {
            0: [97, 98],
            1: [99, 100, 101],
            2: [102],
        }

    async def test_one_usage_chunk_and_one_end(self) -> None:
        response = await post(three(), COMPLETIONS, {"prompt": ["ab", "cde", "f"]} | USAGE)
        assert response.content.count(b"[DONE]") == 1
        *before, last = chunks(response)
        assert not any("usage" in chunk for chunk in before)
        assert all(chunk["choices"] for chunk in before)
        assert (last["choices"], last["usage"]["completion_tokens"]) == ([], 6)

    async def test_continuous_usage_is_that_of_the_choice(self) -> None:
        """However far the others are, and however far the engine is ahead."""
        *found, last = chunks(await post(three(), COMPLETIONS, {"prompt": ["ab", "cde", "f"]} | CONTINUOUS))
        counts: dict[int, list[tuple[int, int, int]]] = {0: [], 1: [], 2: []}
        for chunk in found:
            usage = chunk["usage"]
            counts[chunk["choices"][0]["index"]].append(
                (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"])
            )
        assert counts == {0: [(2, 1, 3)], 1: [(3, 1, 4), (3, 2, 5)], 2: [(1, 2, 3), (1, 3, 4)]}
        assert last["usage"] == {"prompt_tokens": 6, "total_tokens": 12, "completion_tokens": 6}
