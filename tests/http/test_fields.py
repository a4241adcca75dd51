"""Every request field that vLLM or OpenAI knows is served, or refused by name where it asks for something.

The fields are listed here as vLLM 0.32 and OpenAI document them, not taken from the server's own schemas, so that one
that a schema lacks, and would pass over in silence, is found.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from litestar import Litestar
from msgspec import NODEFAULT, structs

from adapters.inbound.http.openai.chat.schema import ChatRequest
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.sampling import SamplingFields, Unbuilt
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.http.answers import answer, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question, with_logprobs

TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}


class Field(NamedTuple):
    """A field that is not served: values that ask for nothing, and values that ask for something."""

    neutral: list[Any]
    asking: list[Any]


SHARED: dict[str, Field] = {
    "return_weight_versions": Field([False], [True]),
    "thinking_token_budget": Field([-1], [0, 100]),
    "use_beam_search": Field([False], [True]),
    "watermarking": Field([False], [True]),
}
CHAT_ONLY: dict[str, Field] = {
    "audio": Field([], [{"voice": "alloy", "format": "wav"}]),
    "function_call": Field(["none"], ["auto", {"name": "f"}]),
    "functions": Field([], [[{"name": "f"}]]),
    "media_io_kwargs": Field([{}], [{"video": {"num_frames": 4}}]),
    "metadata": Field([], [{"a": "b"}]),
    "mm_processor_kwargs": Field([{}], [{"num_crops": 4}]),
    "modalities": Field([["text"]], [["text", "audio"], ["audio"]]),
    "moderation": Field([], [{"model": "omni-moderation-latest"}]),
    "prediction": Field([], [{"type": "content", "content": "x"}]),
    "prompt_cache_key": Field([], ["k"]),
    "prompt_cache_options": Field([], [{"mode": "explicit"}]),
    "prompt_cache_retention": Field([], ["24h", "in_memory"]),
    "safety_identifier": Field([], ["user"]),
    "service_tier": Field(["auto"], ["flex", "priority"]),
    "store": Field([False], [True]),
    "tool_choice": Field(["none"], ["auto", "required", {"type": "function", "function": {"name": "f"}}]),
    "tools": Field([], [[TOOL], []]),
    "verbosity": Field([], ["low", "high"]),
    "web_search_options": Field([], [{}]),
}
COMPLETIONS_ONLY: dict[str, Field] = {
    "best_of": Field([1], [2]),
    "prompt_embeds": Field([], ["AAAA", ["AAAA"]]),
    "suffix": Field([], [" end"]),
}
UNBUILT = {CHAT: SHARED | CHAT_ONLY, COMPLETIONS: SHARED | COMPLETIONS_ONLY}
SCHEMAS: dict[str, type[SamplingFields]] = {CHAT: ChatRequest, COMPLETIONS: CompletionRequest}

BUILT_SHARED: dict[str, list[Any]] = {
    "model": [None, "", "m"],
    "response_format": [None, {"type": "text"}, {"type": "json_object"}],
    "structured_outputs": [None, {"choice": ["a"]}],
    "temperature": [None, 0, 0.5, 1, 2, 1e-9],
    "top_p": [None, 0.1, 1],
    "top_k": [None, -1, 0, 1, 50],
    "min_p": [None, 0, 0.5, 1],
    "seed": [None, -1, 0, 2**63 - 1, -(2**63)],
    "stop": [None, "z", [], ["y", "z"], ["v", "w", "y", "z"]],
    "stop_token_ids": [None, [], [5, 6]],
    "ignore_eos": [None, False, True],
    "min_tokens": [None, 0, 2],
    "stream": [None, False],
    "stream_options": [None],
    "prompt_logprobs": [None, 0, 1, 20],
    "logprob_token_ids": [None, [104], [0, 260, 0]],
    "skip_special_tokens": [None, False, True],
    "return_tokens_as_token_ids": [None, False, True],
    "return_token_ids": [None, False, True],
    "request_id": [None, "", "x"],
    "user": [None, "me"],
    "max_tokens": [None, 1 + 1, 100, 8192],
    "add_special_tokens": [None, False, True],
    "allowed_token_ids": [None, [104], [0, 260, 0]],
    "bad_words": [None, [], ["x", "a b", " x"]],
    "cache_salt": [None, "s", "s" * 128],
    "ec_transfer_params": [None, {}, {"a": 1}],
    "frequency_penalty": [None, 0, -2, 0.5, 2],
    "include_stop_str_in_output": [None, False, True],
    "kv_transfer_params": [None, {}, {"do_remote_decode": True}, {"prompt_token_ids": None}],
    "logit_bias": [None, {}, {"5": 1}, {"0": -1000, "260": 1e9}],
    "n": [None, 1],
    "presence_penalty": [None, 0, -2, 0.5, 2],
    "priority": [None, 0, 1, -1, 2**63 - 1, -(2**63)],
    "repetition_detection": [None, {}, {"max_pattern_size": 3, "min_count": 2}],
    "repetition_penalty": [None, 1e-9, 1, 3.5],
    "session_id": [None, "", "s"],
    "spaces_between_special_tokens": [None, False, True],
    "stream_interval": [None, 1, 2, 2**63 - 1],
    "truncate_prompt_tokens": [None, -1, 1, 8191, 8192],
    "truncation_side": [None, "left", "right"],
    "length_penalty": [None, 1, 0.5],
    "mm_payload": [None, "tensors", "none"],
    "return_mm_kwargs": [None, True, False],
    "return_token_offsets": [None, True, False],
    "routed_experts_prompt_start": [None, 0, 1],
    "vllm_xargs": [None, {}, {"a": "b", "c": 1, "d": 0.5, "e": ["f", 1, 0.5]}],
}
BUILT: dict[str, dict[str, list[Any]]] = {
    CHAT: BUILT_SHARED
    | {
        "max_completion_tokens": [None, 2, 100],
        "logprobs": [None, False, True],
        "top_logprobs": [None, 0, 20],
        "add_generation_prompt": [None, True, False],
        "chat_template": [None],
        "chat_template_kwargs": [None, {}, {"a": None, "b": "auto"}],
        "continue_final_message": [None, False],
        "documents": [None, []],
        "include_reasoning": [None, True, False],
        "parallel_tool_calls": [None, True, False],
        "echo": [None, False, True],
        "reasoning_effort": [None],
        "return_prompt_text": [None, False, True],
    },
    COMPLETIONS: BUILT_SHARED | {"logprobs": [None, 0, 1, 20], "echo": [None, False, True]},
}
NEEDS_LOGPROBS = ("top_logprobs", "logprob_token_ids")


@pytest.fixture(scope="module")
def engine() -> ScriptedEngine:
    return ScriptedEngine(steps(104, 105))


@pytest.fixture(scope="module")
def app(engine: ScriptedEngine) -> Litestar:
    return application(engine)


def listed(fields_of: Mapping[str, Mapping[str, Any]]) -> pytest.MarkDecorator:
    """Runs a test for each endpoint and each of its fields."""
    return pytest.mark.parametrize(
        ("path", "name"),
        [
            pytest.param(path, name, id=f"{'chat' if path == CHAT else 'completions'}-{name}")
            for path, fields in fields_of.items()
            for name in fields
        ],
    )


@listed(UNBUILT)
async def test_what_is_not_served_is_refused_by_name(
    app: Litestar, engine: ScriptedEngine, path: str, name: str
) -> None:
    submitted = len(engine.submitted)
    for value in UNBUILT[path][name].asking:
        error = error_of(await post(app, path, question(path) | {name: value}), 400)
        assert error["param"] == name, value
        assert name in error["message"]
    assert len(engine.submitted) == submitted


@listed(UNBUILT)
async def test_what_asks_for_nothing_is_taken(app: Litestar, path: str, name: str) -> None:
    for value in (None, *UNBUILT[path][name].neutral):
        assert answer(await post(app, path, question(path) | {name: value})).text == "hi"


@by_endpoint
def test_schemas_know_every_field(path: str) -> None:
    known = {field.name for field in structs.fields(SCHEMAS[path])}
    assert not (set(UNBUILT[path]) | set(BUILT[path])) - known


@by_endpoint
def test_every_field_of_a_schema_that_is_served_is_listed(path: str) -> None:
    served = {field.name for field in structs.fields(SCHEMAS[path])} - DEFAULTS[path].keys()
    assert served == BUILT[path].keys() | {"messages" if path == CHAT else "prompt"}


DEFAULTS: dict[str, dict[str, Any]] = {
    path: {
        field.name: field.default if field.default_factory is NODEFAULT else field.default_factory()
        for field in structs.fields(schema)
        if field.type == Unbuilt
    }
    for path, schema in SCHEMAS.items()
}
"""What the schemas say of what is not served."""


@listed(DEFAULTS)
async def test_every_field_of_a_schema_that_is_not_served(app: Litestar, path: str, name: str) -> None:
    assert answer(await post(app, path, question(path) | {name: DEFAULTS[path][name]})).text == "hi"
    assert error_of(await post(app, path, question(path) | {name: {"un": "likely"}}), 400)["param"] == name


@listed(BUILT)
async def test_served_fields_take_their_values(app: Litestar, path: str, name: str) -> None:
    beside = with_logprobs(path, 0) if name in NEEDS_LOGPROBS else {}
    for value in BUILT[path][name]:
        assert answer(await post(app, path, question(path, "hi") | beside | {name: value})).text.endswith("hi")


@by_endpoint
async def test_what_nobody_knows_is_ignored(app: Litestar, path: str) -> None:
    unknown = {"nobody_knows": 1, "N": 2, "": [], "guided_json": {}, "logprob": {"a": [None, True, 1.5, "x"]}}
    assert answer(await post(app, path, question(path) | unknown)).text == "hi"


async def test_what_reaches_the_engine(app: Litestar, engine: ScriptedEngine) -> None:
    fields = {
        "temperature": 0.5,
        "top_p": 0.25,
        "top_k": 7,
        "min_p": 0.125,
        "seed": 11,
        "stop_token_ids": [5, 6],
        "ignore_eos": True,
        "min_tokens": 2,
        "max_tokens": 9,
        "prompt_logprobs": 3,
        "logprob_token_ids": [6, 5, 6],
    }
    for path in UNBUILT:
        await post(app, path, question(path) | fields | with_logprobs(path, 0))
        sampling = engine.submitted[-1].sampling
        assert {name: getattr(sampling, name) for name in fields} == fields


async def test_max_completion_tokens_wins(app: Litestar, engine: ScriptedEngine) -> None:
    await post(app, CHAT, question(CHAT, max_tokens=3, max_completion_tokens=5))
    assert engine.submitted[-1].sampling.max_tokens == 5


async def test_how_much_is_generated_by_default(app: Litestar, engine: ScriptedEngine) -> None:
    """Completions 16, as OpenAI; chat all that fits behind the prompt."""
    await post(app, COMPLETIONS, question(COMPLETIONS, "abc"))
    assert engine.submitted[-1].sampling.max_tokens == 16
    await post(app, CHAT, question(CHAT, "abc"))
    assert engine.submitted[-1].sampling.max_tokens == 8192 - 5


async def test_what_fits_is_the_most(app: Litestar, engine: ScriptedEngine) -> None:
    await post(app, COMPLETIONS, question(COMPLETIONS, "a" * 8000, max_tokens=8192))
    assert engine.submitted[-1].sampling.max_tokens == 192


class TestMessages:
    """What of a conversation reaches the engine, in the tokens of the template."""

    @pytest.mark.parametrize(
        ("messages", "prompt"),
        [
            ([{"role": "user", "content": "a"}], [258, 97, 259]),
            ([{"role": "user", "content": [{"type": "text", "text": "a"}]}], [258, 97, 259]),
            ([{"role": "user", "content": ""}], [258, 259]),
            ([{"role": "user", "content": None}], [258, 259]),
            ([{"role": "user"}], [258, 259]),
            ([{"role": "user", "content": []}], [258, 259]),
            (
                [{"role": "system", "content": "s"}, {"role": "user", "content": "a", "name": "ann"}],
                [260, 115, 258, 97, 259],
            ),
            (
                [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": []}],
                [258, 97, 259, 98, 257, 259],
            ),
            ([{"role": "user", "content": "a", "nobody_knows": {}}], [258, 97, 259]),
        ],
    )
    async def test_prompt(
        self, app: Litestar, engine: ScriptedEngine, messages: list[dict[str, Any]], prompt: list[int]
    ) -> None:
        assert answer(await post(app, CHAT, {"messages": messages})).text == "hi"
        assert list(engine.submitted[-1].prompt_token_ids) == prompt
