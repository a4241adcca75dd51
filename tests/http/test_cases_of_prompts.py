"""Reported cases about prompts: echoed, scored, several. See test_cases."""

from collections.abc import Sequence
from typing import Any

import pytest
from litestar import Litestar
from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import Script, ScriptedEngine, steps
from domain.generation import TokenDelta
from domain.logprobs import LogprobColumns
from tests.http.answers import answer, answers, error_of
from tests.http.serving import COMPLETIONS, application, post, question
from tests.http.test_cases import STREAMED, logprobs_of, says
from tests.http.vocabulary import ROLE, HardTokenizer, byte_tokens


def reading(prompt: Sequence[int], *token_ids: int, **kwargs: Any) -> Script:
    """Answers with these tokens to this prompt; both are scored, each token beside the alternative `~`."""
    first, *others = steps(*token_ids, alternatives=[ord("~")], **kwargs)
    ids = [shown for token_id in prompt[1:] for shown in (token_id, ord("~"))]
    scores = LogprobColumns(2, ids, [-0.5, -0.25] * (len(prompt) - 1), [2] * (len(prompt) - 1))
    return [replace(first, prompt_logprobs=scores), *others]


def reads(prompt: Sequence[int], *token_ids: int, **kwargs: Any) -> Litestar:
    return application(ScriptedEngine(reading(prompt, *token_ids, **kwargs)), tokenizer=HardTokenizer())


async def test_case_2_offsets_of_an_echoed_stream() -> None:
    app = reads(b"Seven plus one", *b" is ", tokens_per_step=2)
    fields = {"prompt": "Seven plus one", "max_tokens": 4, "temperature": 0, "echo": True, "logprobs": 1}

    whole = await logprobs_of(app, COMPLETIONS, **fields)
    streamed = await logprobs_of(app, COMPLETIONS, stream=True, **fields)

    assert whole == streamed
    assert whole["text_offset"] == list(range(18))


@STREAMED
async def test_case_16_the_real_token_first_then_by_rank(stream: bool) -> None:
    """N + 1 keys where the prompt's token is not among the N best, else N; the first position has none."""
    prompt = LogprobColumns(3, [98, 121, 120, 99, 122, 99], [-9.0, -1.0, -2.0, -2.0, -1.0, -2.0], [50, 2])
    first, *others = steps(104, 105, alternatives=[[111, 110], [105, 110]])
    app = application(ScriptedEngine([replace(first, prompt_logprobs=prompt), *others]))

    found = await logprobs_of(app, COMPLETIONS, prompt="abc", echo=True, logprobs=2, stream=stream)

    assert found["tokens"] == ["a", "b", "c", "h", "i"]
    assert [row and list(row) for row in found["top_logprobs"]] == [
        None,
        ["b", "y", "x"],
        ["c", "z"],
        ["h", "o", "n"],
        ["i", "n"],
    ]
    assert found["token_logprobs"] == [None, -9.0, -2.0, -0.375, -0.125]


async def test_case_26_the_real_prompt_token_is_told_apart() -> None:
    """It is first at its position, and there even where it is none of the likeliest."""
    ids = [32, 97, 99, 98, 98, 97, 32, 97, 120, 99, 99, 97]
    scores = LogprobColumns(
        3, ids, [-4.0, -0.5, -1.0, -0.5, -0.5, -1.0, -4.0, -0.5, -1.0, -0.5, -0.5, -1.0], [9, 1, 8, 1]
    )
    app = application(ScriptedEngine([TokenDelta([33], prompt_logprobs=scores)]))

    body = (await post(app, COMPLETIONS, {"prompt": "a b c", "max_tokens": 1, "prompt_logprobs": 2})).json()

    first, *others = body["choices"][0]["prompt_logprobs"]
    assert first is None
    assert [list(position) for position in others] == [
        ["32", "97", "99"],
        ["98", "97"],
        ["32", "97", "120"],
        ["99", "97"],
    ]
    for position, (real, rank) in zip(others, [(" ", 9), ("b", 1), (" ", 8), ("c", 1)], strict=True):
        values = list(position.values())
        assert list(values[0]) == ["logprob", "rank", "decoded_token"]
        assert (values[0]["decoded_token"], values[0]["rank"]) == (real, rank)
    assert others[0]["97"] == {"logprob": -0.5, "rank": 1, "decoded_token": "a"}


@STREAMED
async def test_case_30_echo_scores_the_prompt(stream: bool) -> None:
    prompt = "Q: 2+2? A: 4"
    app = reads(byte_tokens(prompt), *b"!")
    body = {"prompt": prompt, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1, "stream": stream}

    shown = answer(await post(app, COMPLETIONS, body))

    assert shown.logprobs is not None
    assert len(shown.tokens) == len(prompt) + 1
    first, *others = shown.logprobs["token_logprobs"]
    assert first is None
    assert others == [-0.5] * (len(prompt) - 1) + [-0.25]
    assert shown.text == prompt + "!"


@STREAMED
@pytest.mark.parametrize("logprobs", [None, 1])
async def test_case_31_echo_with_token_ids(stream: bool, logprobs: int | None) -> None:
    app = reads(b"Rain falls", *b" on")
    body = {"prompt": "Rain falls", "max_tokens": 3, "echo": True, "return_token_ids": True, "logprobs": logprobs}

    shown = answer(await post(app, COMPLETIONS, body | {"stream": stream}))

    assert shown.text == "Rain falls on"
    assert shown.prompt_token_ids == list(b"Rain falls")
    assert shown.token_ids == list(b" on")


@pytest.mark.parametrize("prompt", ["a b c", list(b"a b c")], ids=["text", "ids"])
@pytest.mark.parametrize("logprobs", [None, 0, 1])
@STREAMED
async def test_case_32_nothing_but_the_prompt(stream: bool, logprobs: int | None, prompt: str | list[int]) -> None:
    """Contract 6.3: the token that the engine samples all the same shows nowhere."""
    engine_app = reads(b"a b c", *b"xyz")
    body = {"prompt": prompt, "max_tokens": 0, "echo": True, "logprobs": logprobs, "return_token_ids": True}
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}

    shown = answer(await post(engine_app, COMPLETIONS, body | options))

    assert (shown.text, shown.finish_reason, shown.stop_reason) == ("a b c", "length", None)
    assert (shown.token_ids, shown.prompt_token_ids) == ([], list(b"a b c"))
    assert shown.usage == {"prompt_tokens": 5, "total_tokens": 5, "completion_tokens": 0}
    if logprobs is None:
        assert shown.logprobs is None
    else:
        assert shown.logprobs == {
            "text_offset": [0, 1, 2, 3, 4],
            "token_logprobs": [None, -0.5, -0.5, -0.5, -0.5],
            "tokens": list("a b c"),
            "top_logprobs": [None, *[{letter: -0.5, **({"~": -0.25} if logprobs else {})} for letter in " b c"]],
        }


@STREAMED
async def test_case_32_needs_echo(stream: bool) -> None:
    absent: dict[str, Any] = {}
    for field in (absent, {"echo": False}, {"echo": None}):
        body = question(COMPLETIONS, max_tokens=0, stream=stream) | field
        assert error_of(await post(says(104), COMPLETIONS, body), 400)["param"] == "max_tokens"


@STREAMED
async def test_case_33_echo_of_a_prompt_in_tokens(stream: bool) -> None:
    prompt = [*byte_tokens("é!"), ROLE, 97]
    app = reads(prompt, 98)

    body = {"prompt": prompt, "max_tokens": 2, "echo": True, "logprobs": 1, "stream": stream}
    shown = answer(await post(app, COMPLETIONS, body))

    assert shown.text == "é!<|assistant|>ab"
    assert shown.logprobs is not None
    assert shown.tokens == ["", "é", "!", "<|assistant|>", "a", "b"]
    assert shown.logprobs["text_offset"] == [0, 0, 1, 2, 15, 16]


@STREAMED
async def test_case_33_echo_of_several_prompts_in_tokens(stream: bool) -> None:
    """Each is a choice whose offsets start at 0."""
    engine = ScriptedEngine(reading([5, 6, 7], *b"hi"), reading([8, 9], *b"yo"))
    body = {"prompt": [[5, 6, 7], [8, 9]], "max_tokens": 2, "echo": True, "logprobs": 1, "stream": stream}

    found = answers(await post(application(engine), COMPLETIONS, body))

    assert [one.text for one in found] == ["\x05\x06\x07hi", "\x08\x09yo"]
    assert [one.tokens for one in found] == [["\x05", "\x06", "\x07", "h", "i"], ["\x08", "\x09", "y", "o"]]
    assert [one.logprobs and one.logprobs["text_offset"] for one in found] == [[0, 1, 2, 3, 4], [0, 1, 2, 3]]
    assert [one.logprobs and one.logprobs["token_logprobs"] for one in found] == [
        [None, -0.5, -0.5, -0.25, -0.25],
        [None, -0.5, -0.25, -0.25],
    ]


@STREAMED
async def test_case_34_token_texts_do_not_grow(stream: bool) -> None:
    prompt = "\n2) Bo owns 17"
    shown = answer(
        await post(
            reads(byte_tokens(prompt), *b"..."),
            COMPLETIONS,
            {"prompt": prompt, "echo": True, "logprobs": 1, "stream": stream},
        )
    )
    assert "".join(shown.tokens) == shown.text
    assert {len(token) for token in shown.tokens} == {1}
