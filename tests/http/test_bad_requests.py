"""Whatever is wrong with a request, the answer is OpenAI's error object with a status that says whose fault it is."""

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx
import pytest
from litestar import Litestar

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.http.answers import error_of
from tests.http.serving import CHAT, COMPLETIONS, ENDPOINTS, JSON, application, by_endpoint, client_of, post, question

LIMIT = 2000
DEEP = 100_000


@pytest.fixture(scope="module")
def engine() -> ScriptedEngine:
    return ScriptedEngine(steps(104, 105))


@pytest.fixture(scope="module")
def app(engine: ScriptedEngine) -> Litestar:
    return application(engine)


async def requested(app: Litestar, method: str, path: str, **kwargs: Any) -> httpx.Response:
    async with client_of(app) as client:
        return await client.request(method, path, **kwargs)


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/nothing", "/v1/chat", "/v1/chat/completions/x", "/metricsx", "/%ff"])
async def test_unknown_route(app: Litestar, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        assert error_of(await requested(app, method, path), 404, "NotFoundError")["param"] is None


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", CHAT, "POST"),
        ("PUT", CHAT, "POST"),
        ("DELETE", COMPLETIONS, "POST"),
        ("POST", "/v1/models", "GET"),
        ("POST", "/health", "GET"),
        ("POST", "/version", "GET"),
        ("POST", "/metrics", "GET"),
    ],
)
async def test_wrong_method(app: Litestar, method: str, path: str, allowed: str) -> None:
    response = await requested(app, method, path)
    assert error_of(response, 405, "MethodNotAllowedError")["param"] is None
    assert allowed in response.headers["allow"].split(", ")


NOT_JSON = {
    "nothing": b"",
    "blank": b"  \n",
    "cut off": b'{"prompt": "hi"',
    "text": b"prompt=hi",
    "after the object": b'{"messages": [], "prompt": "hi"} {}',
    "single quotes": b"{'prompt': 'hi'}",
    "trailing comma": b'{"prompt": "hi",}',
    "comment": b'{"prompt": "hi" /* hello */}',
    "byte order mark": b'\xef\xbb\xbf{"prompt": "hi"}',
    "UTF-16": '{"prompt": "hi"}'.encode("utf-16"),
    "invalid UTF-8": b'{"model": "\xff"}',
    "overlong UTF-8": b'{"model": "\xc0\x80"}',
    "encoded surrogate": b'{"model": "\xed\xa0\xbd"}',
    "lone high surrogate": rb'{"model": "\ud83c"}',
    "lone high surrogate before text": rb'{"model": "\ud83cA"}',
    "high surrogate twice": rb'{"model": "\ud83c\ud83c"}',
    "lone low surrogate": rb'{"model": "\udf89"}',
    "NaN": b'{"temperature": NaN}',
    "NaN in an unknown value": b'{"x": NaN}',
    "Infinity": b'{"temperature": -Infinity}',
    "control character": b'{"model": "\x00"}',
    "unknown escape": rb'{"model": "\q"}',
    "hexadecimal": b'{"max_tokens": 0x10}',
    "leading zero": b'{"max_tokens": 010}',
}


@pytest.mark.parametrize("body", NOT_JSON.values(), ids=NOT_JSON.keys())
async def test_not_json(app: Litestar, body: bytes) -> None:
    for path in ENDPOINTS:
        error = error_of(await post(app, path, body), 400)
        assert (error["message"], error["param"]) == ("The request body is not valid JSON.", None)


@pytest.mark.parametrize("body", [b"null", b"[]", b"1", b'"prompt"', b"true", b'[{"prompt": "hi"}]'])
@by_endpoint
async def test_not_an_object(app: Litestar, path: str, body: bytes) -> None:
    error = error_of(await post(app, path, body), 400)
    assert (error["message"], error["param"]) == ("The request body must be a JSON object.", None)


NESTED = {
    "array": b"[" * DEEP,
    "object": b'{"a":' * DEEP,
    "array in a field": b'{"prompt": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "array in messages": b'{"messages": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "object in messages": b'{"messages": [{"role": "user", "x": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}]}",
    "array in an unknown field": b'{"x": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "object in an unknown field": b'{"x": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "array in an unsupported field": b'{"tools": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "object in an unsupported field": b'{"metadata": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
}


@pytest.mark.parametrize("body", NESTED.values(), ids=NESTED.keys())
@by_endpoint
async def test_deep_nesting(app: Litestar, path: str, body: bytes) -> None:
    error_of(await post(app, path, body), 400)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("truncation_side", "SECRET"),
        ("mm_payload", "SECRET\nSECRET"),
        ("response_format", {"type": "SECRET"}),
    ],
    ids=str,
)
@by_endpoint
async def test_a_value_that_is_not_known_is_not_echoed(app: Litestar, path: str, field: str, value: Any) -> None:
    response = await post(app, path, question(path) | {field: value})
    error = error_of(response, 400)
    assert error["param"] == field
    assert error["message"].endswith(": not a value that is known.")
    assert "secret" not in response.text.lower()


WRONG_TYPES: dict[str, list[Any]] = {
    "model": [1, ["m"], {}],
    "temperature": ["1", [], True],
    "top_p": ["1", {}, False],
    "top_k": ["1", 1.5, 1.0, True, 2**63, -(2**63) - 1],
    "min_p": ["0.1", [0.1]],
    "seed": ["1", 1.5, False, 2**63],
    "stop": [1, [1], {"a": 1}, [["x"]], True],
    "stop_token_ids": [1, "1", ["1"], [1.5], [-1], [True], [2**63], {}],
    "ignore_eos": [1, "true", []],
    "min_tokens": ["1", 1.5, True],
    "max_tokens": ["5", 5.5, 5.0, True, [], 2**63, 10**40],
    "stream": [1, "true", "false", []],
    "prompt_logprobs": ["1", 1.5, True, [], 2**63],
    "logprob_token_ids": [1, "1", ["1"], [1.5], [-1], [True], [None], [2**63], {}],
    "stream_options": [True, [], "include_usage", {"include_usage": 1}, {"continuous_usage_stats": "yes"}],
    "skip_special_tokens": [0, "false"],
    "return_tokens_as_token_ids": [1, 0, "true", []],
    "return_token_ids": [1, "true"],
    "request_id": [1, []],
    "user": [1, {}],
}
WRONG_IN_CHAT: dict[str, list[Any]] = {
    "messages": [
        None,
        "hi",
        {},
        {"role": "user", "content": "hi"},
        ["hi"],
        [None],
        [1],
        [{}],
        [{"content": "hi"}],
        [{"role": 1, "content": "hi"}],
        [{"role": None, "content": "hi"}],
        [{"role": "user", "content": 1}],
        [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        [{"role": "user", "content": ["hi"]}],
        [{"role": "user", "content": [{"text": "hi"}]}],
        [{"role": "user", "content": [{"type": "text"}]}],
        [{"role": "user", "content": [{"type": "text", "text": 1}]}],
        [{"role": "user", "content": "hi", "name": 1}],
    ],
    "max_completion_tokens": ["5", 1.5, True],
    "logprobs": [1, 0, "true", []],
    "top_logprobs": ["2", 1.5, True, []],
}
WRONG_IN_COMPLETIONS: dict[str, list[Any]] = {
    "prompt": [
        1,
        True,
        {},
        [True],
        [1.5],
        [1.0],
        [-1],
        [None],
        [2**63],
        [[1.5]],
        [["a"]],
        [[-1]],
        [[True]],
        [[[1]]],
        [{}],
    ],
    "logprobs": [True, "1", 1.5, []],
    "echo": [1, "true", []],
}


async def check_param(app: Litestar, path: str, field: str, values: list[Any]) -> None:
    """Each of the values is a 400 that names the field."""
    for value in values:
        error = error_of(await post(app, path, question(path) | {field: value}), 400)
        assert error["param"] == field, (value, error)


by_field = partial(pytest.mark.parametrize, ("field", "values"))


@by_field((WRONG_TYPES | WRONG_IN_CHAT).items())
async def test_wrong_type_in_chat(app: Litestar, field: str, values: list[Any]) -> None:
    await check_param(app, CHAT, field, values)


@by_field((WRONG_TYPES | WRONG_IN_COMPLETIONS).items())
async def test_wrong_type_in_completions(app: Litestar, field: str, values: list[Any]) -> None:
    await check_param(app, COMPLETIONS, field, values)


async def test_numbers_too_large_for_anything(app: Litestar) -> None:
    for path in ENDPOINTS:
        for field in ("temperature", "max_tokens", "seed", "n", "frequency_penalty"):
            body = json.dumps(question(path)).removesuffix("}").encode() + b', "%b": 1e999}' % field.encode()
            assert error_of(await post(app, path, body), 400)["param"] in (field, None)


REFUSED: dict[str, list[Any]] = {
    "max_tokens": [0, -1, 8193],
    "stop": ["", [""], ["a", ""], ["a", "b", "c", "d", "e"]],
    "stop_token_ids": [[261], [1, 2**62]],
    "temperature": [-0.1, 2.1],
    "top_p": [0, -1, 1.01],
    "top_k": [-2],
    "min_p": [-0.1, 1.1],
    "prompt_logprobs": [-2, -1, 21],
    "logprob_token_ids": [[], [1]],
}
REFUSED_IN_COMPLETIONS = REFUSED | {
    "prompt": [
        *[None, "", [], [""], [[]], ["a", ""], ["", "a"], [[1], []]],
        *[[1, [2]], [[1], 2], [1, "a"], ["a", 1], ["a", [1]], [[1], "a"]],
        *[[261], [1, 10**15], [[1], [2, 261]], ["a"] * 1025, [[1]] * 1025],
    ],
    "min_tokens": [-1, 17],
    "logprobs": [-2, 21, -1],
}
REFUSED_IN_CHAT = REFUSED | {
    "messages": [
        [],
        [{"role": "nobody", "content": "hi"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}],
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],
        [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {}}]}],
        [{"role": "tool", "content": "4", "tool_call_id": "1"}],
    ],
    "max_completion_tokens": [0, -1, 8193],
    "top_logprobs": [1, -1, -2, 21],
    "min_tokens": [-1],
}


async def check_refused(app: Litestar, engine: ScriptedEngine, path: str, field: str, values: list[Any]) -> None:
    """Each of the values is a 400 that names the field, streamed or not, before the engine hears of it."""
    submitted = len(engine.submitted)
    for value in values:
        for stream in (False, True):
            error = error_of(await post(app, path, question(path, stream=stream) | {field: value}), 400)
            assert error["param"] == field, (value, error)
    assert len(engine.submitted) == submitted


@by_field(REFUSED_IN_CHAT.items())
async def test_refused_in_chat(app: Litestar, engine: ScriptedEngine, field: str, values: list[Any]) -> None:
    await check_refused(app, engine, CHAT, field, values)


@by_field(REFUSED_IN_COMPLETIONS.items())
async def test_refused_in_completions(app: Litestar, engine: ScriptedEngine, field: str, values: list[Any]) -> None:
    await check_refused(app, engine, COMPLETIONS, field, values)


@by_endpoint
async def test_stream_options_without_a_stream(app: Litestar, path: str) -> None:
    for stream in ({}, {"stream": None}, {"stream": False}):
        for options in ({"include_usage": True}, {"include_usage": False}):
            body = question(path, stream_options=options, **stream)
            assert error_of(await post(app, path, body), 400)["param"] == "stream_options"
        assert (await post(app, path, question(path, stream_options={}, **stream))).status_code == 200


async def test_missing_messages(app: Litestar) -> None:
    error = error_of(await post(app, CHAT, {"model": "m"}), 400)
    assert (error["message"], error["param"]) == ("messages is required.", "messages")


async def test_missing_prompt(app: Litestar) -> None:
    assert error_of(await post(app, COMPLETIONS, {"model": "m"}), 400)["param"] == "prompt"


@by_endpoint
async def test_unknown_model(app: Litestar, path: str) -> None:
    error = error_of(await post(app, path, question(path, model="gpt-5")), 404, "NotFoundError")
    assert error["param"] == "model"
    assert "gpt-5" in error["message"]
    error_of(await post(app, path, question(path, model="x" * 10_000)), 404, "NotFoundError")


async def test_prompt_that_leaves_no_room(engine: ScriptedEngine) -> None:
    app = application(ScriptedEngine(steps(104), max_model_len=10))
    for prompt in ("0123456789", [48] * 10, "x" * 50):
        error = error_of(await post(app, COMPLETIONS, {"prompt": prompt}), 400)
        assert error["param"] == "prompt"
        assert "10 tokens" in error["message"]
        assert str(len(prompt)) in error["message"]
    assert error_of(await post(app, CHAT, question(CHAT, "01234567")), 400)["param"] == "messages"


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", "application/msgpack"],
)
@by_endpoint
async def test_wrong_content_type(app: Litestar, path: str, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    response = await requested(app, "POST", path, content=json.dumps(question(path)).encode(), headers=headers)
    assert "application/json" in error_of(response, 400)["message"]


@pytest.mark.parametrize(
    "content_type", ["application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"]
)
@by_endpoint
async def test_content_type_with_parameters(app: Litestar, path: str, content_type: str) -> None:
    assert (await post(app, path, question(path), **{"content-type": content_type})).status_code == 200


class TestBodyLimit:
    """The longest body that is read, with and without a length announced."""

    @pytest.fixture
    def app(self, engine: ScriptedEngine) -> Litestar:
        return application(engine, body_limit=LIMIT)

    @staticmethod
    def body(path: str, length: int) -> bytes:
        bare = json.dumps(question(path, user="")).encode()
        return json.dumps(question(path, user="x" * (length - len(bare)))).encode()

    @by_endpoint
    async def test_length_announced(self, app: Litestar, path: str) -> None:
        assert (await post(app, path, self.body(path, LIMIT))).status_code == 200
        error = error_of(await post(app, path, self.body(path, LIMIT + 1)), 413, "RequestEntityTooLargeError")
        assert str(LIMIT) in error["message"]

    @by_endpoint
    async def test_chunked(self, app: Litestar, path: str) -> None:
        assert (await self.chunked(app, path, self.body(path, LIMIT))).status_code == 200
        error_of(await self.chunked(app, path, self.body(path, LIMIT + 1)), 413, "RequestEntityTooLargeError")

    @pytest.mark.parametrize("announced", ["ten", "-1", "1e3", "٣", " 10", "+10", "9" * 5000])
    async def test_length_that_is_no_number(self, app: Litestar, announced: str) -> None:
        """A server's HTTP parser refuses most of these; what it lets pass is counted as it comes."""
        headers = [(b"content-type", b"application/json"), (b"content-length", announced.encode())]
        response = await requested(app, "POST", CHAT, content=self.body(CHAT, LIMIT), headers=headers)
        assert response.status_code in (200, 413)

    async def test_no_limit(self, engine: ScriptedEngine) -> None:
        app = application(engine, body_limit=0)
        assert (await post(app, CHAT, self.body(CHAT, 100_000))).status_code == 200

    @staticmethod
    async def chunked(app: Litestar, path: str, body: bytes) -> httpx.Response:
        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 100):
                yield body[start : start + 100]

        async with client_of(app) as client:
            request = client.build_request("POST", path, content=pieces(), headers=JSON)
            assert "content-length" not in request.headers
            return await client.send(request)


async def test_errors_do_not_repeat_what_was_sent(app: Litestar) -> None:
    secret = "do not repeat this"
    for body in (
        {"prompt": {secret: secret}},
        {"messages": [{"role": "user", "content": {"x": secret}}]},
        {"prompt": "hi", "max_tokens": secret},
        {"prompt": "hi", "stop": {secret: 1}},
    ):
        for path in ENDPOINTS:
            assert secret not in (await post(app, path, body)).text
