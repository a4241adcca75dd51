"""`/inference/v1/generate`: tokens in, tokens out, under no display; and what calls generations off."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from litestar import Litestar

from adapters.bootstrap.app import build_server_app
from adapters.inbound.cli.settings import HttpSettings, server_options
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE
from adapters.outbound.mock_engine.scripted import Script, ScriptedEngine, steps
from application.model import ModelDefaults
from application.options import ServerOptions
from domain.generation import FinishReason, TokenDelta, TransferParams
from domain.logprobs import LogprobColumns
from domain.speculation import Speculation
from tests.cli.commands import serve
from tests.http.answers import Json, chunks, error_of, undated
from tests.http.exchange import Exchange
from tests.http.serving import CHAT, COMPLETIONS, application, container, counted, post, question

GENERATE = "/inference/v1/generate"
ABORT = "/inference/v1/abort_requests"
SCALE_OUT = HttpSettings(enable_scale_out=True)
HEAD = (
    b'{"request_id":"generate-tokens-r","model":"m","created":1,"usage":{"prompt_tokens":2,"total_tokens":4,'
    b'"completion_tokens":2,"prompt_tokens_details":null,"completion_tokens_details":null},"prompt_logprobs":null,'
    b'"prompt_token_id_logprobs":null,"prompt_token_ids":null,"mm_placeholders":null,"metrics":null,'
    b'"kv_transfer_params":null,"ec_transfer_params":null,'
)
NULLS = b'"routed_experts":null,"sampling_mask":null,"weight_versions":null,'
ROW = (
    b'{"token_id":104,"logprob":-0.375,"rank":3,"top_logprobs":[{"token_id":104,"logprob":-0.375,"rank":3},'
    b'{"token_id":120,"logprob":-0.125,"rank":1},{"token_id":240,"logprob":-0.25,"rank":2}]}'
)
STREAM = {"stream": True}


def app_of(*scripts: Script, **wires: Any) -> Litestar:
    return application(ScriptedEngine(*(scripts or [steps(104, 105)])), settings=SCALE_OUT, **wires)


def asked(sampling: Mapping[str, Any] | None = None, **fields: Any) -> Json:
    return {"token_ids": [97, 98], "request_id": "r", "sampling_params": dict(sampling or {})} | fields


async def whole(app: Litestar, sampling: Mapping[str, Any] | None = None, **fields: Any) -> Json:
    response = await post(app, GENERATE, asked(sampling, **fields))
    assert response.status_code == 200, response.text
    body: Json = response.json()
    return body


class TestTheAnswer:
    async def test_has_the_shape_that_vllm_gives_it(self) -> None:
        response = await post(app_of(), GENERATE, asked())
        assert undated(response.content) == (
            HEAD + b'"output_mode":"tokens","choices":[{"index":0,"finish_reason":"length","stop_reason":null,'
            b'"token_ids":[104,105],' + NULLS + b'"logprobs":null}]}'
        )

    async def test_with_its_text(self) -> None:
        response = await post(app_of(), GENERATE, asked(output_mode="text"))
        assert undated(response.content) == (
            HEAD + b'"output_mode":"text","choices":[{"index":0,"finish_reason":"length","stop_reason":null,'
            b'"token_ids":[104,105],' + NULLS + b'"text":"hi","logprobs":null}]}'
        )

    async def test_streamed(self) -> None:
        body = asked(return_token_ids=True, stream=True, stream_options={"include_usage": True})
        response = await post(app_of(), GENERATE, body)
        start = b'data: {"request_id":"generate-tokens-r","usage":'
        assert response.content == b"".join(
            (
                start + b'null,"prompt_token_ids":[97,98],"output_mode":"tokens","choices":[{"index":0,',
                b'"finish_reason":null,"stop_reason":null,"token_ids":[104],' + NULLS + b'"logprobs":null}]}\n\n',
                start + b'null,"output_mode":"tokens","choices":[{"index":0,"finish_reason":"length",',
                b'"stop_reason":null,"token_ids":[105],' + NULLS + b'"logprobs":null}]}\n\n',
                start + b'{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2},"output_mode":"tokens",',
                b'"choices":[]}\n\n',
                b"data: [DONE]\n\n",
            )
        )

    async def test_streamed_tells_the_usage_so_far(self) -> None:
        options = {"include_usage": True, "continuous_usage_stats": True}
        stream = chunks(await post(app_of(), GENERATE, asked(stream=True, stream_options=options)))
        assert [chunk["usage"]["completion_tokens"] for chunk in stream] == [1, 2, 2]
        assert set(stream[0]["usage"]) == {
            "prompt_tokens", "total_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details",
        }  # fmt: skip

    async def test_tells_what_the_engine_leaves(self) -> None:
        left = TokenDelta([104], transfer=TransferParams({"a": 1}, {"b": 2}), cached_tokens=1)
        app = app_of([left], options=ServerOptions(tells_prompt_details=True))
        body = await whole(app, kv_transfer_params={"do": True}, ec_transfer_params={"e": 1})
        assert (body["kv_transfer_params"], body["ec_transfer_params"]) == ({"a": 1}, {"b": 2})
        assert body["usage"]["prompt_tokens_details"] == {
            "cached_tokens": 1, "created_cache_tokens": None, "multimodal_tokens": None,
        }  # fmt: skip

    @pytest.mark.parametrize("stream", [False, True])
    async def test_tells_what_the_engine_counts_of_drafts_and_no_times(self, stream: bool) -> None:
        app = app_of(
            [TokenDelta([104], speculation=Speculation(2, [0, 1], 2))], options=ServerOptions(tells_timing=True)
        )
        options = {"stream_options": {"include_usage": True}} if stream else {}
        response = await post(app, GENERATE, asked(stream=stream, **options))
        metrics = (chunks(response)[-1] if stream else response.json())["metrics"]
        assert metrics["speculative_decoding"]["num_spec_steps"] == 1
        assert metrics.get("generation_time_ms") is None
        silent = (await post(app_of(options=ServerOptions(tells_timing=True)), GENERATE, asked())).json()
        assert silent["metrics"] is None

    async def test_ids_come_from_the_header_the_body_or_nowhere(self) -> None:
        app = app_of()
        assert (await whole(app))["request_id"] == "generate-tokens-r"
        response = await post(app, GENERATE, asked(), **{"x-request-id": "h"})
        assert response.json()["request_id"] == "generate-tokens-h"
        assert len((await whole(app, request_id=None))["request_id"]) == len("generate-tokens-") + 16

    async def test_several_choices_are_told_apart(self) -> None:
        scripts = [steps(104, 105), steps(120)]
        body = await whole(app_of(*scripts), {"n": 2, "temperature": 0.5, "seed": 3})
        assert [(choice["index"], choice["token_ids"]) for choice in body["choices"]] == [(0, [104, 105]), (1, [120])]
        assert body["usage"]["completion_tokens"] == 3
        app = app_of(*scripts)
        stream = chunks(
            await post(app, GENERATE, asked({"n": 2, "temperature": 0.5}, stream=True, return_token_ids=True))
        )
        by_index = {0: [], 1: []}  # type: dict[int, list[int]]
        for chunk in stream:
            [choice] = chunk["choices"]
            by_index[choice["index"]] += choice["token_ids"]
        assert by_index == {0: [104, 105], 1: [120]}
        assert ["prompt_token_ids" in chunk for chunk in stream] == [True, False, False]


class TestScores:
    @pytest.mark.parametrize("flag", [False, True])
    @pytest.mark.parametrize("stream", [False, True])
    async def test_are_by_integer_whatever_the_display(self, flag: bool, stream: bool) -> None:
        """Contract 1.3."""
        app = app_of(steps(104, alternatives=(120, 240)), flag=flag)
        response = await post(app, GENERATE, asked({"logprobs": 2}, stream=stream))
        assert b'"logprobs":{"content":[' + ROW + b"]}}]}" in response.content
        assert b"token_id:" not in response.content

    async def test_of_no_alternatives_are_those_of_the_token(self) -> None:
        body = await whole(app_of(steps(104, alternatives=(120, 240))), {"logprobs": 0})
        entry = {"token_id": 104, "logprob": -0.375, "rank": 3}
        assert body["choices"][0]["logprobs"] == {"content": [entry | {"top_logprobs": [entry]}]}

    async def test_tell_each_id_once_and_no_rank_that_is_none(self) -> None:
        columns = LogprobColumns(3, [104, 104, 120], [float("nan"), -1.0, float("-inf")], [0])
        body = await whole(app_of([TokenDelta([104], columns)]), {"logprobs": 2})
        assert body["choices"][0]["logprobs"]["content"][0]["top_logprobs"] == [
            {"token_id": 104, "logprob": -9999.0, "rank": None},
            {"token_id": 120, "logprob": -9999.0, "rank": 2},
        ]

    async def test_of_chosen_ids(self) -> None:
        app = app_of(steps(104, alternatives=(120, 240)))
        body = await whole(app, {"logprobs": 2, "logprob_token_ids": [120, 240]})
        told = body["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        assert [entry["token_id"] for entry in told] == [104, 120, 240]

    @pytest.mark.parametrize("stream", [False, True])
    async def test_of_the_prompt_come_with_the_first_chunk(self, stream: bool) -> None:
        scored = TokenDelta([104], prompt_logprobs=LogprobColumns(2, [98, 120], [-0.5, -0.25], [2]))
        response = await post(app_of([scored]), GENERATE, asked({"prompt_logprobs": 1}, stream=stream))
        told = chunks(response)[0] if stream else response.json()
        assert told["prompt_logprobs"] == [
            None,
            {
                "98": {"logprob": -0.5, "rank": 2, "decoded_token": "b"},
                "120": {"logprob": -0.25, "rank": 1, "decoded_token": "x"},
            },
        ]

    async def test_of_the_prompt_come_with_each_choice_of_a_stream(self) -> None:
        scored = TokenDelta([104], prompt_logprobs=LogprobColumns(1, [98], [-0.5], [2]))
        sampling = {"n": 2, "temperature": 1.0, "prompt_logprobs": 0}
        body = asked(sampling, stream=True, return_token_ids=True)
        told = chunks(await post(app_of([scored]), GENERATE, body))
        assert ["prompt_logprobs" in chunk for chunk in told] == [True, True]
        assert ["prompt_token_ids" in chunk for chunk in told] == [True, False]

    @pytest.mark.parametrize(("flag", "shown"), [(False, ["h", "x"]), (True, ["token_id:104", "token_id:120"])])
    async def test_beside_a_text_are_those_of_chat(self, flag: bool, shown: list[str]) -> None:
        app = app_of(steps(104, alternatives=(120, 240)), flag=flag)
        body = await whole(app, {"logprobs": 2}, output_mode="text")
        [entry] = body["choices"][0]["logprobs"]["content"]
        assert [one["token"] for one in entry["top_logprobs"]] == shown
        assert [one["bytes"] for one in entry["top_logprobs"]] == [[104], [120]]
        zero = await whole(app, {"logprobs": 0}, output_mode="text")
        assert [one["token"] for one in zero["choices"][0]["logprobs"]["content"][0]["top_logprobs"]] == shown[:1]


class TestTheEngineIsAsked:
    async def test_for_what_the_request_says_and_nothing_else(self) -> None:
        engine = ScriptedEngine(steps(104))
        defaults = ModelDefaults(temperature=0.3, top_k=7, eos_token_id=EOS_TOKEN_ID, stop_token_ids=[258])
        app = application(engine, settings=SCALE_OUT, defaults=defaults)
        sampling = {
            "temperature": 0.5, "top_p": 0.9, "min_p": 0.1, "presence_penalty": 0.1, "frequency_penalty": 0.2,
            "repetition_penalty": 1.1, "seed": 3, "stop_token_ids": [5], "max_tokens": 9, "min_tokens": 2,
            "logit_bias": {"7": 300}, "allowed_token_ids": [7, 8], "extra_args": {"x": [1]}, "bad_words": ["no"],
            "structured_outputs": {"regex": "a"}, "output_kind": 2, "skip_clone": True, "foo": 1,
        }  # fmt: skip
        fields = {"priority": 4, "cache_salt": "s", "kv_transfer_params": {"k": 1}}
        await post(app, GENERATE, asked(sampling, **fields), **{"x-session-id": "t"})
        [request] = engine.submitted
        params = request.sampling
        assert (request.request_id, list(request.prompt_token_ids)) == ("generate-tokens-r", [97, 98])
        assert (request.priority, request.cache_salt, request.session_id) == (4, "s", "t")
        assert (params.temperature, params.top_p, params.top_k, params.min_p) == (0.5, 0.9, 0, 0.1)
        assert (params.presence_penalty, params.frequency_penalty, params.repetition_penalty) == (0.1, 0.2, 1.1)
        assert (params.seed, params.max_tokens, params.min_tokens) == (3, 9, 2)
        assert (list(params.stop_token_ids), params.eos_token_id) == ([5, 258], EOS_TOKEN_ID)
        assert (params.logit_bias, params.allowed_token_ids) == ({7: 100.0}, [7, 8])
        assert params.extra_args == {"x": [1], "kv_transfer_params": {"k": 1}}
        assert params.bad_words_token_ids == [[110, 111], [32, 110, 111]] or params.bad_words_token_ids == [[110, 111]]
        assert params.structured_outputs is not None

    async def test_for_as_many_tokens_as_fit_where_none_are_named(self) -> None:
        engine = ScriptedEngine(steps(104), max_model_len=50)
        await post(application(engine, settings=SCALE_OUT), GENERATE, asked())
        assert engine.submitted[0].sampling.max_tokens == 48


class TestAStopString:
    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("mode", ["tokens", "text"])
    async def test_ends_the_tokens_where_it_is_complete(self, mode: str, stream: bool) -> None:
        app = app_of(steps(104, 105, 106, 107, tokens_per_step=2))
        response = await post(
            app, GENERATE, asked({"stop": ["ij", "z1", "z2", "z3", "z4"]}, output_mode=mode, stream=stream)
        )
        bodies = chunks(response) if stream else [response.json()]
        choices = [body["choices"][0] for body in bodies]
        assert [token_id for choice in choices for token_id in choice["token_ids"]] == [104, 105, 106]
        assert (choices[-1]["finish_reason"], choices[-1]["stop_reason"]) == ("stop", "ij")
        assert "".join(choice.get("text", "") for choice in choices) == ("h" if mode == "text" else "")

    async def test_is_refused_where_no_text_is_made(self) -> None:
        for sampling, fields, param in (
            ({"stop": ["a"], "detokenize": False}, {}, "stop"),
            ({"detokenize": False}, {"output_mode": "text"}, "output_mode"),
        ):
            assert error_of(await post(app_of(), GENERATE, asked(sampling, **fields)), 400)["param"] == param
        app = app_of(options=ServerOptions(tokens_only=True))
        assert error_of(await post(app, GENERATE, asked({"stop": "a"})), 400)["param"] == "stop"
        assert error_of(await post(app, GENERATE, asked(output_mode="text")), 400)["param"] == "output_mode"
        assert (await whole(app))["choices"][0]["token_ids"] == [104, 105]

    def test_a_server_of_tokens_only_is_told_by_its_flag(self) -> None:
        assert server_options(serve("m", "--tokens-only")).tokens_only
        assert not server_options(serve("m", "--enable-scale-out")).tokens_only


async def test_no_text_is_made_that_nobody_asked_for() -> None:
    """No detokenizer: an id that the tokenizer lacks, a broken character and the end token come as they are."""
    app = app_of(steps(0xF0, EOS_TOKEN_ID, finish_reason=FinishReason.STOP), vocab_size=VOCAB_SIZE)
    body = await whole(app)
    assert body["choices"][0]["token_ids"] == [0xF0, EOS_TOKEN_ID]


BAD: list[tuple[Json, str | None]] = [
    ({"token_ids": []}, "token_ids"),
    ({"token_ids": [VOCAB_SIZE]}, "token_ids"),
    ({"token_ids": [-1]}, "token_ids"),
    ({"token_ids": [1.5]}, "token_ids"),
    ({"token_ids": [1.0]}, "token_ids"),
    ({"token_ids": ["1"]}, "token_ids"),
    ({"token_ids": [True]}, "token_ids"),
    ({"token_ids": [2**64]}, "token_ids"),
    ({"token_ids": [[1]]}, "token_ids"),
    ({"token_ids": "ab"}, "token_ids"),
    ({"token_ids": None}, "token_ids"),
    ({"token_ids": [97] * 8192}, "token_ids"),
    ({"sampling_params": None}, "sampling_params"),
    ({"sampling_params": [1]}, "sampling_params"),
    ({"sampling_params": {"max_tokens": "2"}}, "sampling_params"),
    ({"sampling_params": {"max_tokens": 0}}, "max_tokens"),
    ({"sampling_params": {"max_tokens": 8193}}, "max_tokens"),
    ({"sampling_params": {"logprobs": 21}}, "logprobs"),
    ({"sampling_params": {"logprobs": -1}}, "logprobs"),
    ({"sampling_params": {"prompt_logprobs": 21}}, "prompt_logprobs"),
    ({"sampling_params": {"logprob_token_ids": [1]}}, "logprob_token_ids"),
    ({"sampling_params": {"logprobs": 0, "logprob_token_ids": []}}, "logprob_token_ids"),
    ({"sampling_params": {"logprobs": 1, "logprob_token_ids": [VOCAB_SIZE]}}, "logprob_token_ids"),
    ({"sampling_params": {"n": 0}}, "n"),
    ({"sampling_params": {"n": 2, "temperature": 0}}, "n"),
    ({"sampling_params": {"temperature": 3}}, "temperature"),
    ({"sampling_params": {"stop": [""]}}, "stop"),
    ({"sampling_params": {"logit_bias": {"a": 1}}}, "logit_bias"),
    ({"sampling_params": {"allowed_token_ids": []}}, "allowed_token_ids"),
    ({"sampling_params": {"trace_decode_token_ids": [1]}}, "trace_decode_token_ids"),
    ({"sampling_params": {"prompt_logprob_token_ids": [[1]]}}, "prompt_logprob_token_ids"),
    ({"sampling_params": {"thinking_token_budget": 1}}, "thinking_token_budget"),
    ({"sampling_params": {"stream_interval": 0}}, "sampling_params"),
    ({"output_mode": "derender"}, "output_mode"),
    ({"features": {"mm_hashes": {}, "mm_placeholders": {}}}, "features"),
    ({"content_parts": [{}]}, "content_parts"),
    ({"reasoning_ended": True}, "reasoning_ended"),
    ({"cache_salt": "a/b"}, "cache_salt"),
    ({"kv_transfer_params": {"a": 2**70}}, "kv_transfer_params"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("bad", "param"), BAD, ids=lambda one: str(one)[:60])
async def test_a_bad_request_is_told_what_is_wrong(bad: Json, param: str, stream: bool) -> None:
    assert error_of(await post(app_of(), GENERATE, asked() | bad | {"stream": stream}), 400)["param"] == param


async def test_what_is_missing_is_named() -> None:
    assert error_of(await post(app_of(), GENERATE, {"sampling_params": {}}), 400)["param"] == "token_ids"
    assert error_of(await post(app_of(), GENERATE, {"token_ids": [1]}), 400)["param"] == "sampling_params"


async def test_two_million_ids_are_too_many() -> None:
    body = b'{"sampling_params":{},"token_ids":[' + b"97," * 2_000_000 + b"97]}"
    assert error_of(await post(app_of(), GENERATE, body), 400)["param"] == "token_ids"


async def test_another_model_is_not_here() -> None:
    assert error_of(await post(app_of(), GENERATE, asked(model="x")), 404, "NotFoundError")["param"] == "model"


class TestAborting:
    @pytest.mark.parametrize("stream", [False, True])
    async def test_ends_an_answer_with_what_it_has(self, stream: bool) -> None:
        held = asyncio.Event()
        engine = ScriptedEngine([TokenDelta([104]), held, TokenDelta([105])])
        app = application(engine, settings=SCALE_OUT)
        exchange = Exchange(app, GENERATE, asked(stream=stream))
        await engine.next_submitted()
        if stream:
            await exchange.until_received(b'"token_ids":[104]')
        assert (await post(app, ABORT, {"request_ids": ["x", "generate-tokens-r"]})).content == b""
        await exchange.end()
        assert exchange.complete
        assert b'"finish_reason":"abort"' in exchange.received
        shown = re.findall(rb'"token_ids":\[([^]]*)\]', exchange.received)  # by name: the time may have any digits, too
        assert b",".join(filter(None, shown)) == b"104"
        assert engine.aborted == ["generate-tokens-r"]
        assert await counted(app) == {"abort": 1}

    @pytest.mark.parametrize(("path", "request_id"), [(CHAT, "chatcmpl-r"), (COMPLETIONS, "cmpl-r-0")])
    async def test_reaches_every_endpoint_by_the_engine_s_name_for_it(self, path: str, request_id: str) -> None:
        engine = ScriptedEngine([asyncio.Event(), TokenDelta([104])])
        app = application(engine, settings=SCALE_OUT)
        exchange = Exchange(app, path, question(path, request_id="r"))
        await engine.next_submitted()
        await post(app, ABORT, {"request_ids": [request_id]})
        await exchange.end()
        assert b'"finish_reason":"abort"' in exchange.received
        assert not engine.running

    async def test_ends_every_choice(self) -> None:
        engine = ScriptedEngine(*[[TokenDelta([104]), asyncio.Event(), TokenDelta([105])] for _ in range(2)])
        app = application(engine, settings=SCALE_OUT)
        exchange = Exchange(app, GENERATE, asked({"n": 2, "temperature": 1.0}))
        await engine.next_submitted()
        await engine.next_submitted()
        await post(app, ABORT, {"request_ids": ["generate-tokens-r"]})
        await exchange.end()
        body = json.loads(exchange.received)
        assert [choice["finish_reason"] for choice in body["choices"]] == ["abort", "abort"]

    async def test_of_what_ended_does_nothing_and_keeps_nothing(self) -> None:
        wired = container(ScriptedEngine(steps(104)))
        app = build_server_app(wired, SCALE_OUT)
        for body in (asked(), asked(stream=True)):
            await post(app, GENERATE, body)
        assert (await post(app, ABORT, {"request_ids": ["generate-tokens-r"]})).status_code == 200
        assert (await post(app, ABORT, {"request_ids": []})).status_code == 200
        assert not wired.running()._generations

    @pytest.mark.parametrize("body", [{}, {"request_ids": "a"}, {"request_ids": [1]}, {"request_ids": None}])
    async def test_needs_a_list_of_ids(self, body: Json) -> None:
        assert error_of(await post(app_of(), ABORT, body), 400)["param"] == "request_ids"

    async def test_takes_no_other_body(self) -> None:
        error_of(await post(app_of(), ABORT, b"[]"), 400)
