"""The derender routes: what they make of tokens alone, of a stream in pieces, and of what cannot be."""

from typing import Any

import pytest
from litestar import Litestar

from adapters.inbound.cli.settings import HttpSettings
from adapters.inbound.http.openai.sampling import MOST_CHOICES
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.options import ServerOptions
from tests.http.answers import Json, error_of, undated
from tests.http.serving import CHAT, COMPLETIONS, application, post

DERENDER_CHAT, DERENDER_COMPLETIONS = f"{CHAT}/derender", f"{COMPLETIONS}/derender"
ROW = {"token_id": 104, "logprob": -0.5, "rank": 2}
OTHER = {"token_id": 105, "logprob": -0.25, "rank": 1}
SCORED = {"content": [ROW | {"top_logprobs": [ROW, OTHER]}]}


@pytest.fixture
def app() -> Litestar:
    return served()


def served(flag: bool = False, **wires: Any) -> Litestar:
    engine = ScriptedEngine(steps(104), max_model_len=50)
    return application(engine, settings=HttpSettings(enable_scale_out=True), flag=flag, **wires)


def choice(*token_ids: int, **fields: Any) -> Json:
    return {"index": 0, "token_ids": list(token_ids), "finish_reason": "length"} | fields


def generated(*choices: Json, **fields: Any) -> Json:
    return {"request_id": "r", "choices": list(choices)} | fields


async def ok(app: Litestar, path: str, body: Json) -> Any:
    response = await post(app, path, body)
    assert response.status_code == 200, response.text
    return response.json()


class TestWithoutItsRequest:
    async def test_a_conversation_is_answered_in_the_shape_of_chat(self) -> None:
        app = served(options=ServerOptions(fingerprint_mode="none"))
        body = {"generate_response": generated(choice(104, 105)), "prompt_tokens": 4}
        response = await post(app, DERENDER_CHAT, body)
        assert undated(response.content) == (
            b'{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":'
            b'{"role":"assistant","content":"hi","refusal":null,"annotations":null,"audio":null,"function_call":null,'
            b'"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,'
            b'"routed_experts":null}],"service_tier":null,"system_fingerprint":null,"usage":'
            b'{"prompt_tokens":4,"total_tokens":6,"completion_tokens":2,"prompt_tokens_details":null,'
            b'"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,'
            b'"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}'
        )

    async def test_all_rows_are_shown(self, app: Litestar) -> None:
        body = await ok(app, DERENDER_CHAT, {"generate_response": generated(choice(104, logprobs=SCORED))})
        [entry] = body["choices"][0]["logprobs"]["content"]
        assert [other["token"] for other in entry["top_logprobs"]] == ["h", "i"]
        body = await ok(app, DERENDER_COMPLETIONS, {"generate_responses": [generated(choice(104, logprobs=SCORED))]})
        assert body["choices"][0]["logprobs"]["top_logprobs"] == [{"h": -0.5, "i": -0.25}]

    @pytest.mark.parametrize("flag", [False, True])
    async def test_tokens_are_shown_in_the_server_s_display(self, flag: bool) -> None:
        body = {"generate_responses": [generated(choice(104, logprobs=SCORED))]}
        shown = (await ok(served(flag), DERENDER_COMPLETIONS, body))["choices"][0]["logprobs"]["tokens"]
        assert shown == (["token_id:104"] if flag else ["h"])

    async def test_each_prompt_has_its_choices(self, app: Litestar) -> None:
        responses = [generated(choice(104 + of), choice(106 + of, index=1)) for of in (0, 10)]
        told = {"generate_responses": responses, "prompt_tokens": [2, 3], "prompt_token_ids": [[97, 98], None]}
        body = await ok(app, DERENDER_COMPLETIONS, told)
        assert [(one["index"], one["text"]) for one in body["choices"]] == [(0, "h"), (1, "j"), (2, "r"), (3, "t")]
        assert (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]) == (5, 4)

    async def test_a_prompt_that_is_told_is_counted(self, app: Litestar) -> None:
        body = await ok(app, DERENDER_CHAT, {"generate_response": generated(choice(104), prompt_token_ids=[1, 2])})
        assert body["usage"]["prompt_tokens"] == 2

    async def test_what_the_engine_left_is_passed_on(self, app: Litestar) -> None:
        told = generated(choice(104), kv_transfer_params={"a": 1}, ec_transfer_params={"b": 2})
        body = await ok(app, DERENDER_CHAT, {"generate_response": told})
        assert (body["kv_transfer_params"], body["ec_transfer_params"]) == ({"a": 1}, {"b": 2})

    async def test_the_end_of_a_prompt_is_what_the_output_goes_on_with(self, app: Litestar) -> None:
        told = generated(choice(0x9F, 0x8E, 0x89))
        for body in (
            {"generate_response": told, "prompt_token_ids": [97, 0xF0]},
            {"generate_response": told | {"prompt_token_ids": [0xF0]}},
        ):
            assert (await ok(app, DERENDER_CHAT, body))["choices"][0]["message"]["content"] == "🎉"
        alone = await ok(app, DERENDER_CHAT, {"generate_response": told})
        assert alone["choices"][0]["message"]["content"] == "\ufffd\ufffd\ufffd"

    async def test_prompt_scores_tell_the_prompt(self, app: Litestar) -> None:
        scores = [None, {"98": {"logprob": -1.0, "rank": 4, "decoded_token": "?"}, "97": {"logprob": -0.5, "rank": 1}}]
        body = await ok(app, DERENDER_CHAT, {"generate_response": generated(choice(104), prompt_logprobs=scores)})
        assert body["prompt_logprobs"] == [
            None,
            {
                "98": {"logprob": -1.0, "rank": 4, "decoded_token": "b"},
                "97": {"logprob": -0.5, "rank": 1, "decoded_token": "a"},
            },
        ]

    async def test_an_aborted_choice_may_be_empty(self, app: Litestar) -> None:
        told = generated(choice(finish_reason="abort"))
        body = await ok(app, DERENDER_CHAT, {"generate_response": told})
        assert (body["choices"][0]["finish_reason"], body["choices"][0]["message"]["content"]) == ("abort", "")


STOPPING = {"prompt": "x", "stop": ["ij"]}


class TestStopStrings:
    """In a pipeline of tokens alone they are found here."""

    async def test_end_a_whole_answer(self, app: Litestar) -> None:
        told = {"generate_responses": [generated(choice(104, 105, 106, 107))], "completion_request": STOPPING}
        [one] = (await ok(app, DERENDER_COMPLETIONS, told))["choices"]
        assert (one["text"], one["finish_reason"], one["stop_reason"]) == ("h", "stop", "ij")

    async def test_that_the_generator_found_are_found_again(self, app: Litestar) -> None:
        stopped = choice(104, 105, 106, finish_reason="stop", stop_reason="ij")
        told = {"generate_responses": [generated(stopped)]}
        [one] = (await ok(app, DERENDER_COMPLETIONS, told | {"completion_request": STOPPING}))["choices"]
        assert (one["text"], one["stop_reason"]) == ("h", "ij")
        [one] = (await ok(app, DERENDER_COMPLETIONS, told))["choices"]
        assert (one["text"], one["finish_reason"], one["stop_reason"]) == ("hij", "stop", "ij")

    async def test_end_a_stream(self, app: Litestar) -> None:
        state, texts = None, []
        for token_id in (104, 105, 106, 107, 108):
            chunk = generated({"index": 0, "token_ids": [token_id]})
            told = {"stream": True, "generate_chunk": chunk, "stream_state": state, "completion_request": STOPPING}
            body = await ok(app, DERENDER_COMPLETIONS, told)
            state = body["stream_state"]
            texts.append([(one["text"], one["finish_reason"]) for one in body["chunk"]["choices"]])
        assert texts == [[("h", None)], [("", None)], [("", "stop")], [], []]

    async def test_do_not_end_a_stream_before_min_tokens(self, app: Litestar) -> None:
        request = {"prompt": "x", "stop": ["i"], "min_tokens": 2}
        state, texts = None, []
        for token_id in (104, 105, 104, 105):
            chunk = generated({"index": 0, "token_ids": [token_id]})
            told = {"stream": True, "generate_chunk": chunk, "stream_state": state, "completion_request": request}
            body = await ok(app, DERENDER_COMPLETIONS, told)
            state = body["stream_state"]
            texts += [(one["text"], one["finish_reason"]) for one in body["chunk"]["choices"]]
        assert texts == [("h", None), ("i", None), ("h", None), ("", "stop")]


class TestAChunk:
    async def test_of_a_conversation_has_the_shape_that_vllm_gives_it(self, app: Litestar) -> None:
        told = {"stream": True, "generate_chunk": generated({"index": 0, "token_ids": [104, 0xF0]})}
        response = await post(app, DERENDER_CHAT, told)
        assert undated(response.content) == (
            b'{"chunk":{"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
            b'"delta":{"role":"assistant","content":"h","reasoning":null},"logprobs":null,"finish_reason":null,'
            b'"stop_reason":null,"token_ids":null}],"usage":null,"system_fingerprint":null,"prompt_token_ids":null,'
            b'"prompt_text":null,"metrics":null},"stream_state":{"role_sent":true,"unread":"8A==","context":"",'
            b'"text_offset":0,"held":"","stopped_by":null,"seen":2}}'
        )

    async def test_of_a_completion_has_the_shape_that_vllm_gives_it(self, app: Litestar) -> None:
        told = {"stream": True, "generate_chunk": generated({"index": 2, "token_ids": [104]})}
        response = await post(app, DERENDER_COMPLETIONS, told)
        assert undated(response.content) == (
            b'{"chunk":{"id":"r","object":"text_completion","created":1,"model":"m","choices":[{"index":2,"text":"h",'
            b'"logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}],'
            b'"usage":null,"system_fingerprint":null,"metrics":null},"stream_state":{"role_sent":true,"unread":"",'
            b'"context":"","text_offset":0,"held":"","stopped_by":null,"seen":1}}'
        )

    async def test_with_the_usage_alone_keeps_the_state(self, app: Litestar) -> None:
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
        state = {"unread": "8A==", "seen": 4}
        told = {"stream": True, "generate_chunk": generated(usage=usage), "stream_state": state, "prompt_tokens": 9}
        for path in (DERENDER_CHAT, DERENDER_COMPLETIONS):
            body = await ok(app, path, told)
            assert body["chunk"]["choices"] == []
            assert body["chunk"]["usage"] == {
                "prompt_tokens": 9, "total_tokens": 11, "completion_tokens": 2, "prompt_tokens_details": None,
                "completion_tokens_details": None,
            }  # fmt: skip
            assert body["chunk"]["system_fingerprint"]
            assert (body["stream_state"]["unread"], body["stream_state"]["seen"]) == ("8A==", 4)
        telling = served(options=ServerOptions(tells_prompt_details=True))
        details = (await ok(telling, DERENDER_CHAT, told))["chunk"]["usage"]["prompt_tokens_details"]
        assert details["cached_tokens"] == 1

    @pytest.mark.parametrize("text", ["Hi é🎉!", "a\ufffdb", "<|user|>x"])
    @pytest.mark.parametrize("skips", [True, False])
    async def test_after_the_other_reads_as_all_at_once(self, app: Litestar, text: str, skips: bool) -> None:
        token_ids = (await ok(app, "/tokenize", {"prompt": text}))["tokens"]
        request = {"prompt": "x", "skip_special_tokens": skips, "logprobs": 0}
        rows = [{"token_id": token_id, "logprob": -1.0} for token_id in token_ids]
        once = choice(*token_ids, logprobs={"content": rows})
        told = {"generate_responses": [generated(once)], "completion_request": request}
        [whole] = (await ok(app, DERENDER_COMPLETIONS, told))["choices"]
        state, shown, tokens, offsets = None, "", [], []
        for place, (token_id, row) in enumerate(zip(token_ids, rows, strict=True)):
            part = {"index": 0, "token_ids": [token_id], "logprobs": {"content": [row]}}
            part |= {"finish_reason": "length"} if place == len(rows) - 1 else {}
            told = {
                "stream": True,
                "generate_chunk": generated(part),
                "stream_state": state,
                "completion_request": request,
            }
            body = await ok(app, DERENDER_COMPLETIONS, told)
            state, [one] = body["stream_state"], body["chunk"]["choices"]
            shown += one["text"]
            tokens += one["logprobs"]["tokens"]
            offsets += one["logprobs"]["text_offset"]
        assert shown == whole["text"] == (text if not skips else text.replace("<|user|>", ""))
        assert (tokens, offsets) == (whole["logprobs"]["tokens"], whole["logprobs"]["text_offset"])


WIDE = {"content": [*[ROW] * 9, ROW | {"top_logprobs": [OTHER | {"token_id": 120 + i, "rank": i} for i in range(30)]}]}
"""One row that all others would be filled up to."""
UNTOLD = [None] * 50 + [{"104": {"logprob": -0.5, "rank": 1}}]
"""Scores of a prompt longer than the context, whose tokens they do not tell."""
EACH = [choice(104, index=index) for index in range(MOST_CHOICES // 2 + 1)]

RESPONSE = {"generate_response": generated(choice(104))}
RESPONSES = {"generate_responses": [generated(choice(104))]}
CHUNK = {"stream": True, "generate_chunk": generated(choice(104))}
BAD: list[tuple[str, Json, str | None]] = [
    (DERENDER_CHAT, {}, "generate_response"),
    (DERENDER_CHAT, {"stream": True}, "generate_chunk"),
    (DERENDER_CHAT, {"generate_response": {}}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated()}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice())}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104, finish_reason=None))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104, index=1))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104), choice(105))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(VOCAB_SIZE))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(-1))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(*[97] * 51))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104, finish_reason="tired"))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104), output_mode="text")}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(105, logprobs=SCORED))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104, 104, logprobs=SCORED))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104), prompt_logprobs=[{}])}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104), prompt_logprobs=[])}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(*[104] * 10, logprobs=WIDE))}, "generate_response"),
    (DERENDER_CHAT, {"generate_response": generated(choice(104), prompt_logprobs=UNTOLD)}, "prompt_token_ids"),
    (
        DERENDER_CHAT,
        {"generate_response": generated(*EACH, *[one | {"index": one["index"] + len(EACH)} for one in EACH])},
        "generate_response",
    ),
    (DERENDER_COMPLETIONS, {"generate_responses": [generated(*EACH)] * 2}, "generate_responses"),
    (DERENDER_CHAT, RESPONSE | {"prompt_token_ids": [VOCAB_SIZE]}, "prompt_token_ids"),
    (DERENDER_CHAT, RESPONSE | {"prompt_token_ids": [97] * 51}, "prompt_token_ids"),
    (DERENDER_CHAT, RESPONSE | {"prompt_tokens": -1}, "prompt_tokens"),
    (DERENDER_CHAT, RESPONSE | {"chat_request": {"messages": []}}, "messages"),
    (DERENDER_CHAT, RESPONSE | {"chat_request": {}}, "chat_request"),
    (DERENDER_CHAT, RESPONSE | {"model": "x"}, "model"),
    (DERENDER_COMPLETIONS, {}, "generate_responses"),
    (DERENDER_COMPLETIONS, {"generate_responses": []}, "generate_responses"),
    (DERENDER_COMPLETIONS, RESPONSES | {"prompt_tokens": [1, 2]}, "prompt_tokens"),
    (DERENDER_COMPLETIONS, RESPONSES | {"prompt_token_ids": [[1], [2]]}, "prompt_token_ids"),
    (
        DERENDER_COMPLETIONS,
        {"generate_responses": [generated(choice(104)), generated(choice(104), choice(105, index=1))]},
        "generate_responses",
    ),
    (
        DERENDER_COMPLETIONS,
        RESPONSES | {"completion_request": {"prompt": "ab", "echo": True}, "prompt_token_ids": [[97]]},
        "completion_request",
    ),
    (
        DERENDER_COMPLETIONS,
        RESPONSES | {"completion_request": {"prompt": ["a", "b"], "echo": True}},
        "completion_request",
    ),
    (DERENDER_CHAT, {"stream": True, "generate_chunk": generated(choice(104), choice(105, index=1))}, "generate_chunk"),
    (DERENDER_CHAT, CHUNK | {"stream_state": {"unread": "no base64"}}, "stream_state"),
    (DERENDER_CHAT, CHUNK | {"stream_state": {"unread": "A" * 400}}, "stream_state"),
    (DERENDER_CHAT, CHUNK | {"stream_state": {"held": "q" * (65536 + 1)}}, "stream_state"),
    (DERENDER_CHAT, CHUNK | {"stream_state": {"seen": -1}}, "stream_state"),
    (DERENDER_COMPLETIONS, CHUNK | {"stream_state": 5}, "stream_state"),
    (
        DERENDER_COMPLETIONS,
        CHUNK | {"completion_request": {"prompt": "ab", "echo": True}, "prompt_token_ids": [97]},
        "completion_request",
    ),
]


@pytest.mark.parametrize(("path", "body", "param"), BAD, ids=lambda one: str(one)[:80])
async def test_what_cannot_be_is_refused_by_name(app: Litestar, path: str, body: Json, param: str) -> None:
    status, kind = (404, "NotFoundError") if param == "model" else (400, "BadRequestError")
    assert error_of(await post(app, path, body), status, kind)["param"] == param


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null"])
async def test_what_is_no_object_is_refused(app: Litestar, body: bytes) -> None:
    for path in (DERENDER_CHAT, DERENDER_COMPLETIONS):
        error_of(await post(app, path, body), 400)


@pytest.mark.parametrize("held", ["8J+O", "gICA", "////"])
async def test_any_state_is_read(app: Litestar, held: str) -> None:
    """It comes from a client: whatever it holds, the rest of the text is shown."""
    state = {"unread": held, "context": held, "held": "x", "text_offset": 7}
    told = {"stream": True, "generate_chunk": generated(choice(104, EOS_TOKEN_ID)), "stream_state": state}
    body = await ok(app, DERENDER_CHAT, told)
    assert body["chunk"]["choices"][0]["delta"]["content"].endswith("h")
