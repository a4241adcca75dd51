"""The render routes: what a request would have an engine do, and no more."""

import gc
from typing import Any

import pytest
from litestar import Litestar

from adapters.inbound.cli.settings import HttpSettings
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.model import ModelDefaults
from application.options import ServerOptions
from tests.http.answers import Json, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, container, post, question

ALWAYS = (
    b'"presence_penalty":0.0,"frequency_penalty":0.0,"repetition_penalty":1.0,"temperature":1.0,"top_p":1.0,"min_p":0.0,'
    b'"stop":[],"stop_token_ids":[],"max_tokens":%d,"bad_words":[]'
)
RENDERED = (
    b'{"request_id":"%b","token_ids":%b,"token_offsets":null,"features":null,"content_parts":null,"sampling_params":{'
    + ALWAYS
    + b'},"model":%b,"reasoning_ended":null,"reasoning_parser_kwargs":null,"return_token_ids":null,'
    b'"output_mode":"tokens","stream":false,"stream_options":null,"cache_salt":null,"priority":0,'
    b'"kv_transfer_params":null,"ec_transfer_params":null}'
)


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(steps(104), max_model_len=50)


@pytest.fixture
def app(engine: ScriptedEngine) -> Litestar:
    defaults = ModelDefaults(eos_token_id=EOS_TOKEN_ID, stop_token_ids=[258])
    return application(engine, settings=HttpSettings(enable_scale_out=True), defaults=defaults)


async def rendered(app: Litestar, path: str, **fields: Any) -> Json:
    response = await post(app, f"{path}/render", question(path, **fields))
    assert response.status_code == 200, response.text
    made = response.json()
    first: Json = made if path == CHAT else made[0]
    return first


async def test_a_conversation_is_answered_as_vllm_does(app: Litestar, engine: ScriptedEngine) -> None:
    response = await post(app, f"{CHAT}/render", question(CHAT, request_id="r"))
    assert response.content == RENDERED % (b"chatcmpl-r", b"[258,104,105,259]", 46, b"null")
    assert not engine.submitted


async def test_each_text_is_answered_as_vllm_does(app: Litestar) -> None:
    """But for the number of tokens, which vLLM leaves out where it is 16, and takes for as many as fit."""
    response = await post(app, f"{COMPLETIONS}/render", question(COMPLETIONS, request_id="r", model="m"))
    assert response.content == b"[" + RENDERED % (b"cmpl-r", b"[104,105]", 16, b'"m"') + b"]"
    response = await post(app, f"{COMPLETIONS}/render", {"prompt": ["a", "b"], "request_id": "r"})
    assert response.content == b"[%b,%b]" % (
        RENDERED % (b"cmpl-r-0", b"[97]", 16, b"null"),
        RENDERED % (b"cmpl-r-1", b"[98]", 16, b"null"),
    )


SAMPLING: list[tuple[Json, Json]] = [
    ({"temperature": 0.5, "top_p": 0.9, "min_p": 0.1}, {"temperature": 0.5, "top_p": 0.9, "min_p": 0.1}),
    ({"top_k": 3, "seed": 4, "min_tokens": 2}, {"top_k": 3, "seed": 4, "min_tokens": 2}),
    ({"n": 2, "ignore_eos": True}, {"n": 2, "ignore_eos": True}),
    ({"stop": "x", "include_stop_str_in_output": True}, {"stop": ["x"], "include_stop_str_in_output": True}),
    ({"stop_token_ids": [5]}, {"stop_token_ids": [5]}),
    ({"logit_bias": {"7": 300}}, {"logit_bias": {"7": 100.0}}),
    ({"allowed_token_ids": [7]}, {"allowed_token_ids": [7]}),
    ({"bad_words": ["no"]}, {"bad_words": ["no"]}),
    ({"skip_special_tokens": False}, {"skip_special_tokens": False}),
    ({"prompt_logprobs": 1}, {"prompt_logprobs": 1}),
    ({"vllm_xargs": {"a": 1}}, {"extra_args": {"a": 1}}),
    ({"kv_transfer_params": {"a": 1}}, {"extra_args": {"kv_transfer_params": {"a": 1}}}),
    (
        {"repetition_detection": {"max_pattern_size": 3, "min_pattern_size": 1, "min_count": 2}},
        {"repetition_detection": {"max_pattern_size": 3, "min_pattern_size": 1, "min_count": 2}},
    ),
    ({"response_format": {"type": "json_object"}}, {"structured_outputs": {"json_object": True}}),
    ({"structured_outputs": {"regex": "a"}}, {"structured_outputs": {"regex": "a"}}),
    ({"structured_outputs": {"choice": ["a"]}}, {"structured_outputs": {"choice": ["a"]}}),
    ({"structured_outputs": {"grammar": "g"}}, {"structured_outputs": {"grammar": "g"}}),
    (
        {"structured_outputs": {"json": '{"type":"object"}', "disable_any_whitespace": True}},
        {"structured_outputs": {"json": {"type": "object"}, "disable_any_whitespace": True}},
    ),
    (
        {"structured_outputs": {"structural_tag": '{"format":{"type":"any_text"}}'}},
        {"structured_outputs": {"structural_tag": '{"format":{"type":"any_text"}}'}},
    ),
    ({"max_tokens": 40}, {"max_tokens": 40}),
    ({"routed_experts_prompt_start": 1}, {"routed_experts_prompt_start": 1}),
]


@by_endpoint
@pytest.mark.parametrize(("asked", "told"), SAMPLING, ids=str)
async def test_sampling_parameters_say_what_the_request_says(app: Litestar, path: str, asked: Json, told: Json) -> None:
    plain = (await rendered(app, path))["sampling_params"]
    assert (await rendered(app, path, **asked))["sampling_params"] == plain | told


@by_endpoint
async def test_what_is_generated_for_it_is_what_the_one_route_asks_for(path: str) -> None:
    defaults = ModelDefaults(eos_token_id=EOS_TOKEN_ID, stop_token_ids=[258], temperature=0.4, max_tokens=7)
    for asked, _ in SAMPLING:
        if asked.get("n"):
            continue
        engine = ScriptedEngine(steps(104))
        app = application(engine, settings=HttpSettings(enable_scale_out=True), defaults=defaults)
        await post(app, path, question(path, **asked))
        await post(app, "/inference/v1/generate", await rendered(app, path, **asked))
        one, two = engine.submitted
        assert one.sampling.structured_outputs is None or two.sampling.structured_outputs is not None
        assert _asked(one) == _asked(two)


def _asked(request: Any) -> list[Any]:
    sampling = request.sampling
    forms = sampling.structured_outputs and sampling.structured_outputs.form
    fields = [getattr(sampling, name) for name in sampling.__struct_fields__ if name != "structured_outputs"]
    return [list(request.prompt_token_ids), forms, *[list(one) if isinstance(one, tuple) else one for one in fields]]


async def test_rows_are_asked_for_as_the_endpoint_means_them(app: Litestar) -> None:
    for path, asked, told in (
        (CHAT, {"logprobs": True}, {"logprobs": 0}),
        (CHAT, {"logprobs": True, "top_logprobs": 3}, {"logprobs": 3}),
        (CHAT, {"logprobs": True, "logprob_token_ids": [5, 6]}, {"logprobs": 2, "logprob_token_ids": [5, 6]}),
        (CHAT, {"echo": True, "logprobs": True, "top_logprobs": 2}, {"logprobs": 2, "prompt_logprobs": 2}),
        (COMPLETIONS, {"logprobs": 2}, {"logprobs": 2}),
        (COMPLETIONS, {"logprobs": 2, "echo": True}, {"logprobs": 2, "prompt_logprobs": 2}),
    ):
        plain = (await rendered(app, path))["sampling_params"]
        assert (await rendered(app, path, **asked))["sampling_params"] == plain | told


@by_endpoint
async def test_the_rest_of_a_request_is_told(app: Litestar, path: str) -> None:
    fields = {"priority": 3, "cache_salt": "s", "stream": True, "stream_interval": 4, "model": "m"}
    made = await rendered(app, path, **fields, stream_options={"include_usage": True})
    assert (made["priority"], made["cache_salt"], made["stream"], made["model"]) == (3, "s", True, "m")
    assert made["stream_options"] == {"include_usage": True, "continuous_usage_stats": False}
    assert made["sampling_params"]["stream_interval"] == 4


@by_endpoint
@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"use_beam_search": True}, "use_beam_search"),
        ({"n": 0}, "n"),
        ({"temperature": 3}, "temperature"),
        ({"bad_words": [""]}, "bad_words"),
        ({"max_tokens": 51}, "max_tokens"),
        ({"stream": True, "prompt_logprobs": 1}, "prompt_logprobs"),
        ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
    ],
    ids=str,
)
async def test_what_the_one_route_refuses_is_refused(app: Litestar, path: str, fields: Json, param: str) -> None:
    for route in (path, f"{path}/render"):
        assert error_of(await post(app, route, question(path, **fields)), 400)["param"] == param


@by_endpoint
async def test_offsets_of_tokens_are_not_built(app: Litestar, path: str) -> None:
    body = question(path, return_token_offsets=True)
    assert error_of(await post(app, f"{path}/render", body), 400)["param"] == "return_token_offsets"
    await rendered(app, path, return_token_offsets=False)


@by_endpoint
async def test_no_server_option_changes_it(path: str) -> None:
    """1.2: rendering knows none."""
    plain = application(ScriptedEngine(steps(104)), settings=HttpSettings(enable_scale_out=True))
    options = ServerOptions(
        default_return_tokens_as_token_ids=True, response_role="r", forces_usage=True, tells_prompt_details=True,
        tells_timing=True, tokens_only=True, fingerprint_mode="none", stream_interval=9,
    )  # fmt: skip
    other = application(ScriptedEngine(steps(104)), settings=HttpSettings(enable_scale_out=True), options=options)
    for stream in (False, True):
        fields = {"stream": stream, "request_id": "r", "echo": True}
        assert await rendered(plain, path, **fields) == await rendered(other, path, **fields)


def test_nothing_that_prepare_reaches_is_a_server_option() -> None:
    """What imports cannot show: nothing that it is given holds any."""
    options = ServerOptions()
    wired = container(ScriptedEngine(steps(104)), options=options)
    assert _reaches(wired.stage(), options)
    assert not _reaches(wired.prepare(), options)


def _reaches(start: object, wanted: object) -> bool:
    """Through whatever an object of this project refers to."""
    seen: set[int] = set()
    look_at: list[object] = [start]
    while look_at:
        one = look_at.pop()
        if one is wanted:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            look_at += [other for other in gc.get_referents(one) if not isinstance(other, type)]
    return False
