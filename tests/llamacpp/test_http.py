"""The whole application over llama.cpp: the rule's matrix, rows that hold together, and what is refused."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.jinja_chat.bare_tokenizer import bare_tokenizer
from adapters.outbound.jinja_chat.renderer import JinjaChat
from adapters.outbound.llamacpp_engine.engine import open_llamacpp
from adapters.outbound.llamacpp_engine.model import GgufModel
from adapters.outbound.llamacpp_engine.tokenizer import GgufTokenizer
from application.model import ModelDefaults
from tests.http.answers import answer
from tests.http.matrix import SHOWS_TOKEN_IDS
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question, with_logprobs

FLAGS = (False, True)
EMOJI = {"structured_outputs": {"choice": ["🎉é🐱"]}, "max_tokens": 20, "temperature": 0}
PARTS = "🎉é🐱".encode()


@pytest.fixture
async def apps(model: GgufModel, tokenizer: GgufTokenizer) -> AsyncIterator[dict[bool, Litestar]]:
    """By the server's flag."""
    template = bare_tokenizer(model.chat_template, bos_token=model.token_text("bos"), eos_token=model.token_text("eos"))
    wires: dict[str, Any] = {
        "tokenizer": tokenizer,
        "chat_renderer": JinjaChat(template),
        "vocab_size": model.vocab_size,
        "defaults": ModelDefaults(eos_token_id=2, stop_token_ids=[0, 4]),
    }
    async with open_llamacpp(model, max_model_len=512) as engine:
        yield {flag: application(engine, flag=flag, **wires) for flag in FLAGS}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@by_endpoint
async def test_token_strings_are_as_the_rule_says(apps: dict[bool, Litestar], path: str, stream: bool) -> None:
    body = question(path, "Say hi.", stream=stream, max_tokens=3, temperature=0, seed=1, **with_logprobs(path, 2))
    for flag, field, shows_token_ids in SHOWS_TOKEN_IDS:
        shown = answer(await post(apps[flag], path, body | field))
        strings = [*shown.tokens, *(string for row in shown.alternatives for string in row)]
        assert len(shown.tokens) == 3
        assert [string.startswith("token_id:") for string in strings] == [shows_token_ids] * len(strings)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_every_part_of_an_emoji_has_a_row_with_its_bytes(apps: dict[bool, Litestar], stream: bool) -> None:
    body = question(CHAT, "Say something.", stream=stream, **with_logprobs(CHAT, 2), **EMOJI)
    shown = answer(await post(apps[False], CHAT, body))
    assert shown.logprobs is not None
    rows = shown.logprobs["content"]
    assert shown.text == PARTS.decode()
    assert b"".join(bytes(row["bytes"]) for row in rows[:-1]) == PARTS
    assert bytes(rows[-1]["bytes"]) == b"<|im_end|>"
    assert len(rows) > 6
    assert "".join(shown.tokens[:-1]) == PARTS.decode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_echo_with_logprobs_scores_the_prompt(apps: dict[bool, Litestar], stream: bool) -> None:
    body = {"prompt": "Hi 🎉 there", "echo": True, "logprobs": 1, "max_tokens": 4, "temperature": 0, "stream": stream}
    shown = answer(await post(apps[False], COMPLETIONS, body))
    assert shown.text.startswith("Hi 🎉 there")
    assert "".join(shown.tokens) == shown.text
    assert shown.alternatives[0] == []
    assert all(shown.alternatives[1:])


@by_endpoint
async def test_a_prompt_alone_has_scores(apps: dict[bool, Litestar], path: str) -> None:
    body = question(path, "Hi 🎉", prompt_logprobs=2, max_tokens=1)
    got = (await post(apps[False], path, body)).json()
    scores = got["prompt_logprobs"] if path == CHAT else got["choices"][0]["prompt_logprobs"]
    assert scores[0] is None
    assert all(len(row) in (2, 3) for row in scores[1:])


@by_endpoint
async def test_whole_and_streamed_answers_are_the_same(apps: dict[bool, Litestar], path: str) -> None:
    body = question(path, "Tell me a story.", max_tokens=12, seed=5, temperature=1, **with_logprobs(path, 2))
    one = answer(await post(apps[False], path, body))
    other = answer(await post(apps[False], path, body | {"stream": True}))
    assert (one.text, one.tokens, one.alternatives) == (other.text, other.tokens, other.alternatives)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "x"}}}},
            "response_format",
        ),
        ({"structured_outputs": {"regex": "a+"}}, "structured_outputs"),
        ({"structured_outputs": {"grammar": "root ::= ["}}, "structured_outputs"),
        ({"vllm_xargs": {"x": 1}}, "vllm_xargs"),
        (
            {"repetition_detection": {"max_pattern_size": 2, "min_pattern_size": 1, "min_count": 2}},
            "repetition_detection",
        ),
    ],
)
async def test_what_is_not_done_is_a_400(
    apps: dict[bool, Litestar], fields: dict[str, Any], param: str, stream: bool
) -> None:
    response = await post(apps[False], CHAT, question(CHAT, "x", stream=stream, **fields))
    assert response.status_code == 400
    assert response.json()["error"]["param"] == param
