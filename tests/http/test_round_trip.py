"""Render, generate, derender: together they give what the one route gives, in either display, streamed or not."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from litestar import Litestar

from adapters.inbound.cli.settings import HttpSettings
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from application.model import ModelDefaults
from application.options import ServerOptions
from tests.http.answers import Answer, Json, answers, chunks, joined
from tests.http.serving import CHAT, COMPLETIONS, application, post, question

GENERATE = "/inference/v1/generate"
CONTEXT = 512

OF_BOTH: list[Json] = [
    {},
    {"max_tokens": 1},
    {"n": 3, "seed": 5, "temperature": 0.8},
    {"seed": 7, "temperature": 1.5, "max_tokens": 60},
    {"return_token_ids": True},
    {"skip_special_tokens": False, "ignore_eos": True, "max_tokens": 40},
    {"stop": ["e", "the "], "max_tokens": 40},
    {"stop": ["e", "the "], "include_stop_str_in_output": True, "max_tokens": 40},
    {"stop": ["a"], "min_tokens": 30, "max_tokens": 40},
    {"stop_token_ids": [101, 32], "max_tokens": 40},
    {"stop_token_ids": [101], "include_stop_str_in_output": True},
    {"logit_bias": {"120": 5}, "bad_words": ["the"], "presence_penalty": 0.5},
    {"truncate_prompt_tokens": 3},
    {"user": "u", "priority": 2, "cache_salt": "s", "vllm_xargs": {"a": 1}, "kv_transfer_params": {"b": 2}},
]
WITH_ROWS: list[Json] = [{}, {"n": 2, "temperature": 0.9, "seed": 3}, {"return_token_ids": True}, {"stop": ["e"]}]
CHAT_REQUESTS: list[Json] = [
    *OF_BOTH,
    *[{"logprobs": True, "top_logprobs": width} | body for width in (0, 1, 5) for body in WITH_ROWS],
    {"logprobs": True, "top_logprobs": 2, "logprob_token_ids": [104, 105, 300 - 60]},
    {"logprobs": True, "top_logprobs": 2, "echo": True, "add_generation_prompt": False, "continue_final_message": True},
    {"prompt_logprobs": 2},
    {"prompt_logprobs": 0, "return_token_ids": True},
    {"return_prompt_text": True},
    {"add_special_tokens": True, "max_completion_tokens": 5},
]
COMPLETION_REQUESTS: list[Json] = [
    *OF_BOTH,
    *[{"logprobs": width} | body for width in (0, 1, 5) for body in WITH_ROWS],
    {"logprobs": 3, "logprob_token_ids": [104, 105]},
    {"echo": True},
    {"echo": True, "logprobs": 2},
    {"echo": True, "logprobs": 2, "n": 2, "temperature": 0.9, "return_token_ids": True},
    {"echo": True, "logprobs": 2, "max_tokens": 0},
    {"echo": True, "logprobs": 0, "truncate_prompt_tokens": 2},
    {"prompt_logprobs": 2},
    {"prompt_logprobs": 1, "echo": True, "logprobs": 3},
    {"prompt": [104, 105]},
    {"prompt": [104, 0xF0, 0x9F], "echo": True, "logprobs": 1, "logit_bias": {"142": 50}},
    {"prompt": ["ab", "cd"], "logprobs": 1},
    {"prompt": ["ab", "ef"], "n": 2, "temperature": 0.9, "seed": 3, "echo": True},
    {"prompt": [[97, 98], [99]], "echo": True, "logprobs": 1},
]
CASES = [(CHAT, body) for body in CHAT_REQUESTS] + [(COMPLETIONS, body) for body in COMPLETION_REQUESTS]
DISPLAYS = (None, True, False)


@pytest.fixture(params=[False, True], ids=["flag off", "flag on"])
async def app(request: pytest.FixtureRequest) -> AsyncIterator[Litestar]:
    model = DeterministicModel(VOCAB_SIZE, byte_vocabulary=True, max_model_len=CONTEXT)
    engine = MockEngine(model.start, step_seconds=0, max_model_len=CONTEXT)
    options = ServerOptions(
        default_return_tokens_as_token_ids=request.param, tells_prompt_details=True, response_role="assistant"
    )
    yield application(
        engine,
        settings=HttpSettings(enable_scale_out=True),
        options=options,
        defaults=ModelDefaults(eos_token_id=EOS_TOKEN_ID, max_tokens=24),
    )
    await engine.aclose()


async def ok(app: Litestar, path: str, body: Json, **headers: str) -> Any:
    response = await post(app, path, body, **headers)
    assert response.status_code == 200, response.text
    return response.json()


async def rendered(app: Litestar, path: str, body: Json) -> list[Json]:
    """What is to be generated for each prompt."""
    made = await ok(app, f"{path}/render", body)
    return [made] if isinstance(made, dict) else list(made)


def request_field(path: str) -> str:
    return "chat_request" if path == CHAT else "completion_request"


async def in_parts(app: Litestar, path: str, body: Json) -> Json:
    """The answer in one piece, by three routes."""
    prompts = await rendered(app, path, body)
    generated = [await ok(app, GENERATE, prompt) for prompt in prompts]
    ids = [prompt["token_ids"] for prompt in prompts]
    counts = [len(one) for one in ids]
    told = (
        {"generate_response": generated[0], "prompt_token_ids": ids[0], "prompt_tokens": counts[0]}
        if path == CHAT
        else {"generate_responses": generated, "prompt_token_ids": ids, "prompt_tokens": counts}
    )
    answer: Json = await ok(app, f"{path}/derender", told | {request_field(path): body})
    return answer


async def in_chunks(app: Litestar, path: str, body: Json) -> list[Json]:
    """The chunks of a stream, by three routes: a call for each that was generated."""
    found: list[Json] = []
    usages: list[Json] = []
    for place, prompt in enumerate(await rendered(app, path, body)):
        states: dict[int, Json] = {}
        for chunk in chunks(await post(app, GENERATE, prompt)):
            index = chunk["choices"][0]["index"] if chunk["choices"] else -1
            told = {"stream": True, "generate_chunk": chunk, "stream_state": states.get(index)}
            told |= {"prompt_token_ids": prompt["token_ids"], "prompt_tokens": len(prompt["token_ids"])}
            derendered = await ok(app, f"{path}/derender", told | {request_field(path): body})
            states[index] = derendered["stream_state"]
            made = derendered["chunk"]
            if not made["choices"]:
                usages += [made["usage"]] * (made["usage"] is not None)
                continue
            [choice] = made["choices"]
            choice["index"] += place * body.get("n", 1)
            if path == CHAT:
                choice["delta"]["content"] = choice["delta"]["content"] or ""
            found.append(made)
    if usages:
        names = ("prompt_tokens", "total_tokens", "completion_tokens")
        total: Json = {name: sum(usage[name] for usage in usages) for name in names}
        cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
        found.append({"choices": [], "usage": total | {"prompt_tokens_details": {"cached_tokens": cached}}})
    return found


def normalised(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in ("id", "created", "metrics")}


def questions(path: str, body: Json, **more: Any) -> list[Json]:
    """The request, in each display where it shows any tokens."""
    asked = question(path, "Hi é🎉") | body | more
    if path == CHAT and body.get("continue_final_message"):
        asked["messages"] = [*asked["messages"], {"role": "assistant", "content": "Oh"}]
    displays = DISPLAYS if "logprobs" in body else DISPLAYS[:1]
    return [asked | {"return_tokens_as_token_ids": display} for display in displays]


def seen(found: list[Answer]) -> list[Json]:
    return [one._asdict() for one in found]


@pytest.mark.parametrize(("path", "body"), CASES, ids=str)
async def test_in_one_piece(app: Litestar, path: str, body: Json) -> None:
    for asked in questions(path, body):
        assert normalised(await in_parts(app, path, asked)) == normalised(await ok(app, path, asked))


@pytest.mark.parametrize(("path", "body"), CASES, ids=str)
async def test_streamed(app: Litestar, path: str, body: Json) -> None:
    if body.get("prompt_logprobs"):
        body = {name: value for name, value in body.items() if name != "prompt_logprobs"}  # no stream has them
    for asked in questions(path, body, stream=True, stream_options={"include_usage": True}):
        expected = answers(await post(app, path, asked))
        assert seen(joined(await in_chunks(app, path, asked))) == seen(expected)
