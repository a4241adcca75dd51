"""Answers to the byte: field names, their order, which of them are null and which are left out."""

from importlib.metadata import version as installed
from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.mock_engine.scripted import ScriptedEngine
from domain.generation import FinishReason, TokenDelta
from domain.logprobs import LogprobColumns
from tests.http.answers import undated
from tests.http.serving import CHAT, COMPLETIONS, application, get, post, question, with_logprobs

EOS = 257
TENTH = -0.10000000149011612
"""-0.1 in single precision, as a double."""


@pytest.fixture
def app() -> Litestar:
    """Answers `Hi`, then ends; `H` had the alternative `Y`."""
    first = TokenDelta(
        [72],
        LogprobColumns(2, [72, 89], [TENTH, -2.5], [1]),
        prompt_logprobs=LogprobColumns(2, [98, 99], [-3.0, -1.5], [2]),
    )
    second = TokenDelta([105], LogprobColumns(2, [105, 105], [0.0, 0.0], [1]))
    end = TokenDelta([EOS], LogprobColumns(2, [EOS, 33], [-0.25, -1e-7], [2]), finish_reason=FinishReason.STOP)
    return application(ScriptedEngine([first, second, end]))


async def body_of(app: Litestar, path: str, **fields: Any) -> str:
    response = await post(app, path, question(path, "ab", request_id="x", **fields))
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    return undated(response.content).decode()


async def frames_of(app: Litestar, path: str, **fields: Any) -> list[str]:
    response = await post(app, path, question(path, "ab", request_id="x", stream=True, **fields))
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert "content-length" not in response.headers
    text = undated(response.content).decode()
    assert text.endswith("\n\n")
    return text[:-2].split("\n\n")


async def test_chat(app: Litestar) -> None:
    assert await body_of(app, CHAT) == (
        '{"id":"chatcmpl-x","object":"chat.completion","created":1,"model":"m","choices":['
        '{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"annotations":null,"audio":null,'
        '"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"stop","stop_reason":null,'
        '"token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-scripted-b9cb3ee1",'
        '"usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3,"prompt_tokens_details":null,'
        '"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,'
        '"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}'
    )


async def test_chat_with_logprobs(app: Litestar) -> None:
    assert await body_of(app, CHAT, return_token_ids=True, **with_logprobs(CHAT, 1)) == (
        '{"id":"chatcmpl-x","object":"chat.completion","created":1,"model":"m","choices":['
        '{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null,"annotations":null,"audio":null,'
        '"function_call":null,"reasoning":null},"logprobs":{"content":['
        '{"token":"H","logprob":-0.10000000149011612,"bytes":[72],"top_logprobs":['
        '{"token":"H","logprob":-0.10000000149011612,"bytes":[72]}]},'
        '{"token":"i","logprob":0.0,"bytes":[105],"top_logprobs":[{"token":"i","logprob":0.0,"bytes":[105]}]},'
        '{"token":"<|eos|>","logprob":-0.25,"bytes":[60,124,101,111,115,124,62],"top_logprobs":['
        '{"token":"<|eos|>","logprob":-0.25,"bytes":[60,124,101,111,115,124,62]}]}]},'
        '"finish_reason":"stop","stop_reason":null,"token_ids":[72,105,257],"routed_experts":null}],'
        '"service_tier":null,"system_fingerprint":"vllm-scripted-b9cb3ee1",'
        '"usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3,"prompt_tokens_details":null,'
        '"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":[258,97,98,259],'
        '"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}'
    )


async def test_completion(app: Litestar) -> None:
    assert await body_of(app, COMPLETIONS) == (
        '{"id":"cmpl-x","object":"text_completion","created":1,"model":"m","choices":['
        '{"index":0,"text":"Hi","logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null,'
        '"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}],"service_tier":null,'
        '"system_fingerprint":"vllm-scripted-b9cb3ee1","usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3,'
        '"prompt_tokens_details":null,"completion_tokens_details":null},"kv_transfer_params":null,'
        '"ec_transfer_params":null,"metrics":null}'
    )


async def test_completion_with_logprobs_and_echo(app: Litestar) -> None:
    assert await body_of(app, COMPLETIONS, echo=True, return_token_ids=True, **with_logprobs(COMPLETIONS, 1)) == (
        '{"id":"cmpl-x","object":"text_completion","created":1,"model":"m","choices":['
        '{"index":0,"text":"abHi","logprobs":{"text_offset":[0,1,2,3,4],'
        '"token_logprobs":[null,-3.0,-0.10000000149011612,0.0,-0.25],"tokens":["a","b","H","i","<|eos|>"],'
        '"top_logprobs":[null,{"b":-3.0,"c":-1.5},{"H":-0.10000000149011612,"Y":-2.5},{"i":0.0},'
        '{"<|eos|>":-0.25,"!":-1e-7}]},"finish_reason":"stop","stop_reason":null,"token_ids":[72,105,257],'
        '"prompt_logprobs":[null,{"98":{"logprob":-3.0,"rank":2,"decoded_token":"b"},'
        '"99":{"logprob":-1.5,"rank":1,"decoded_token":"c"}}],"prompt_token_ids":[97,98],"routed_experts":null}],'
        '"service_tier":null,"system_fingerprint":"vllm-scripted-b9cb3ee1","usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3,'
        '"prompt_tokens_details":null,"completion_tokens_details":null},"kv_transfer_params":null,'
        '"ec_transfer_params":null,"metrics":null}'
    )


CHAT_CHUNK = 'data: {"id":"chatcmpl-x","object":"chat.completion.chunk","created":1,"model":"m","choices":['


async def test_chat_stream(app: Litestar) -> None:
    assert await frames_of(app, CHAT) == [
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"role":"assistant","content":""}},"logprobs":null,'
        '"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}',
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"content":"H"}},"logprobs":null,"finish_reason":null,"token_ids":null}}]}}',
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"content":"i"}},"logprobs":null,"finish_reason":null,"token_ids":null}}]}}',
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"content":""}},"logprobs":null,"finish_reason":"stop",'
        '"stop_reason":null,"token_ids":null}],"system_fingerprint":"vllm-scripted-b9cb3ee1"}',
        "data: [DONE]",
    ]


async def test_chat_stream_with_logprobs_and_usage(app: Litestar) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    fields = with_logprobs(CHAT, 1) | {"return_token_ids": True, "stream_options": options}
    assert await frames_of(app, CHAT, **fields) == [
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"role":"assistant","content":""}},"logprobs":null,'
        '"finish_reason":null}],"usage":{"prompt_tokens":4,"total_tokens":4,"completion_tokens":0,'
        '"completion_tokens_details":null},"prompt_token_ids":[258,97,98,259],"prompt_text":null}',
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"content":"H"}},"logprobs":{{"content":['
        '{"token":"H","logprob":-0.10000000149011612,"bytes":[72],"top_logprobs":['
        '{"token":"H","logprob":-0.10000000149011612,"bytes":[72]}]}]},"finish_reason":null,"token_ids":[72]}],'
        '"usage":{"prompt_tokens":4,"total_tokens":5,"completion_tokens":1,"completion_tokens_details":null}}',
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"content":"i"}},"logprobs":{{"content":['
        '{"token":"i","logprob":0.0,"bytes":[105],"top_logprobs":[{"token":"i","logprob":0.0,"bytes":[105]}]}]},'
        '"finish_reason":null,"token_ids":[105]}],'
        '"usage":{"prompt_tokens":4,"total_tokens":6,"completion_tokens":2,"completion_tokens_details":null}}',
        f'{CHAT_CHUNK}{{"index":0,"delta":{{"content":""}},"logprobs":{{"content":['
        '{"token":"<|eos|>","logprob":-0.25,"bytes":[60,124,101,111,115,124,62],"top_logprobs":['
        '{"token":"<|eos|>","logprob":-0.25,"bytes":[60,124,101,111,115,124,62]}]}]},"finish_reason":"stop",'
        '"stop_reason":null,"token_ids":[257]}],'
        '"usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3,"completion_tokens_details":null}}',
        f'{CHAT_CHUNK}],"usage":{{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3}},'
        '"system_fingerprint":"vllm-scripted-b9cb3ee1"}',
        "data: [DONE]",
    ]


TEXT_CHUNK = 'data: {"id":"cmpl-x","object":"text_completion","created":1,"model":"m","choices":['


async def test_completion_stream(app: Litestar) -> None:
    nulls = '"prompt_token_ids":null,"token_ids":null'
    assert await frames_of(app, COMPLETIONS) == [
        f'{TEXT_CHUNK}{{"index":0,"text":"H","logprobs":null,"finish_reason":null,"stop_reason":null,{nulls}}}]}}',
        f'{TEXT_CHUNK}{{"index":0,"text":"i","logprobs":null,"finish_reason":null,"stop_reason":null,{nulls}}}]}}',
        f'{TEXT_CHUNK}{{"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":null,{nulls}}}],'
        '"system_fingerprint":"vllm-scripted-b9cb3ee1"}',
        "data: [DONE]",
    ]


async def test_completion_stream_with_echo(app: Litestar) -> None:
    """Same as vLLM: an echoed prompt brings its ids."""
    first, *_ = await frames_of(app, COMPLETIONS, echo=True)
    assert first == (
        f'{TEXT_CHUNK}{{"index":0,"text":"abH","logprobs":null,"finish_reason":null,"stop_reason":null,'
        '"prompt_token_ids":[97,98],"token_ids":null}]}'
    )


async def test_completion_stream_with_logprobs_echo_and_usage(app: Litestar) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    fields = with_logprobs(COMPLETIONS, 1) | {"echo": True, "return_token_ids": True, "stream_options": options}
    assert await frames_of(app, COMPLETIONS, **fields) == [
        f'{TEXT_CHUNK}{{"index":0,"text":"abH","logprobs":{{"text_offset":[0,1,2],'
        '"token_logprobs":[null,-3.0,-0.10000000149011612],"tokens":["a","b","H"],'
        '"top_logprobs":[null,{"b":-3.0,"c":-1.5},{"H":-0.10000000149011612,"Y":-2.5}]},"finish_reason":null,'
        '"stop_reason":null,"prompt_token_ids":[97,98],"token_ids":[72]}],'
        '"usage":{"prompt_tokens":2,"total_tokens":3,"completion_tokens":1}}',
        f'{TEXT_CHUNK}{{"index":0,"text":"i","logprobs":{{"text_offset":[3],"token_logprobs":[0.0],"tokens":["i"],'
        '"top_logprobs":[{"i":0.0}]},"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,'
        '"token_ids":[105]}],"usage":{"prompt_tokens":2,"total_tokens":4,"completion_tokens":2}}',
        f'{TEXT_CHUNK}{{"index":0,"text":"","logprobs":{{"text_offset":[4],"token_logprobs":[-0.25],'
        '"tokens":["<|eos|>"],"top_logprobs":[{"<|eos|>":-0.25,"!":-1e-7}]},"finish_reason":"stop",'
        '"stop_reason":null,"prompt_token_ids":null,"token_ids":[257]}],'
        '"usage":{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3}}',
        f'{TEXT_CHUNK}],"usage":{{"prompt_tokens":2,"total_tokens":5,"completion_tokens":3}},'
        '"system_fingerprint":"vllm-scripted-b9cb3ee1"}',
        "data: [DONE]",
    ]


async def test_error(app: Litestar) -> None:
    response = await post(app, COMPLETIONS, {})
    assert response.content == (
        b'{"error":{"message":"prompt must be given and must not be empty.","type":"BadRequestError",'
        b'"param":"prompt","code":400}}'
    )


async def test_models() -> None:
    app = application(ScriptedEngine([TokenDelta([1])], max_model_len=77), names=["first", "second"])

    listed = (await get(app, "/v1/models")).json()

    assert list(listed) == ["object", "data"]
    assert listed["object"] == "list"
    assert [card["id"] for card in listed["data"]] == ["first", "second"]
    card = listed["data"][0]
    assert list(card) == ["id", "object", "created", "owned_by", "root", "parent", "max_model_len", "permission"]
    assert (card["object"], card["root"], card["parent"], card["max_model_len"]) == ("model", "models/m", None, 77)
    assert [permission["object"] for permission in card["permission"]] == ["model_permission"]


async def test_answers_carry_the_first_served_name() -> None:
    app = application(ScriptedEngine([TokenDelta([65])]), names=["first", "second"])
    for asked in ({}, {"model": None}, {"model": ""}, {"model": "first"}, {"model": "second"}):
        assert (await post(app, COMPLETIONS, question(COMPLETIONS, **asked))).json()["model"] == "first"


async def test_version_and_health() -> None:
    app = application(ScriptedEngine([TokenDelta([65])], version="0.32.0"))

    assert (await get(app, "/version")).json() == {"version": "0.32.0", "northbound_version": installed("northbound")}
    health = await get(app, "/health")
    assert (health.status_code, health.content) == (200, b"")


class TestId:
    """`id` is the caller's, from header or body, else random."""

    async def test_header_wins(self, app: Litestar) -> None:
        headers = {"x-request-id": "from-header"}
        response = await post(app, CHAT, question(CHAT, request_id="from-body"), **headers)
        assert response.json()["id"] == "chatcmpl-from-header"

    async def test_random(self, app: Litestar) -> None:
        first, second = [(await post(app, COMPLETIONS, question(COMPLETIONS))).json()["id"] for _ in range(2)]
        assert first != second
        assert first.startswith("cmpl-")
        assert len(first) == len("cmpl-") + 16

    async def test_the_engine_is_told(self) -> None:
        engine = ScriptedEngine([TokenDelta([65])])
        app = application(engine)
        await post(app, CHAT, question(CHAT, request_id="x"))
        await post(app, COMPLETIONS, question(COMPLETIONS, request_id="x"))
        assert [request.request_id for request in engine.submitted] == ["chatcmpl-x", "cmpl-x-0"]
