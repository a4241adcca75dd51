"""The server's own OpenAPI document says what the routes do: all of it, and nothing else."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import jsonschema_rs
import pytest
from litestar import Litestar
from msgspec import structs

from adapters.bootstrap.app import build_app
from adapters.inbound.cli.settings import HttpSettings
from adapters.inbound.http.openapi.routes import ApiDocument
from adapters.inbound.http.vllm.gate import SCALE_OUT
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.options import ServerOptions
from domain.errors import EngineFailure
from tests.fakes.lora import LoadingEngine
from tests.http.answers import Json, error_of
from tests.http.described import Described
from tests.http.serving import (
    CHAT,
    COMPLETIONS,
    application,
    by_endpoint,
    container,
    get,
    post,
    question,
    with_logprobs,
)
from tests.http.test_door import server
from tests.http.test_fields import BUILT, NEEDS_LOGPROBS, SCHEMAS, UNBUILT, listed
from tests.http.test_server_options import SPECULATION, drafted, told

UNDESCRIBED = {"/openapi.json", "/docs", "/redoc"}
REQUESTS = {CHAT: "ChatRequest", COMPLETIONS: "CompletionRequest"}


@pytest.fixture(scope="module")
def app() -> Litestar:
    engine = ScriptedEngine(steps(104, 105, alternatives=[104, 33]))
    return application(engine)


@pytest.fixture(scope="module")
def document(app: Litestar) -> Json:
    return told_by(app)


def told_by(app: Litestar) -> Json:
    body: Json = json.loads(ApiDocument(served(app)).json)
    return body


def served(app: Litestar) -> list[str]:
    """What is behind the gate is not there where it is closed."""
    paths = [route.path for route in app.routes]
    return [path for path in paths if "/abort_requests" in paths or path not in SCALE_OUT]


@pytest.fixture(scope="module")
def described(document: Json) -> Described:
    return Described(document)


async def test_it_is_served(app: Litestar, document: Json) -> None:
    response = await get(app, "/openapi.json")
    assert response.headers["content-type"] == "application/json"
    assert response.json() == document


async def test_every_route_is_described_and_no_other(app: Litestar, document: Json) -> None:
    routes = {
        (route.path, method.lower())
        for route in app.routes
        for method in route.methods
        if method != "OPTIONS" and route.path in served(app)
    }
    described = {(path, method) for path, operations in document["paths"].items() for method in operations}
    assert described == {(path, method) for path, method in routes if path not in UNDESCRIBED}


async def test_it_is_openapi_and_json_schema(document: Json) -> None:
    assert document["openapi"] == "3.1.0"
    for component in document["components"]["schemas"].values():
        jsonschema_rs.meta.validate(component | {"$schema": "https://json-schema.org/draft/2020-12/schema"})
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert set(find(document, "$ref")) == {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


def find(node: Any, key: str) -> Iterator[Any]:
    for name, value in node.items() if isinstance(node, dict) else enumerate(node if isinstance(node, list) else ()):
        if name == key:
            yield value
        yield from find(value, key)


def test_what_an_answer_always_has_is_required(document: Json) -> None:
    schemas = document["components"]["schemas"]
    for name in ("ChatBody", "ChatChoice", "CompletionBody", "CompletionChoice", "Usage", "ModelList", "ErrorObject"):
        assert schemas[name]["required"] == list(schemas[name]["properties"])
    assert set(schemas["CompletionChunk"]["required"]) == {"id", "object", "created", "model", "choices"}


@pytest.mark.parametrize("name", ["Metrics", "SpeculativeDecoding"])
def test_what_a_stream_leaves_out_is_described_all_the_same(document: Json, name: str) -> None:
    whole, streamed = (document["components"]["schemas"][one] for one in (name, f"Stream{name}"))
    assert list(streamed["properties"]) == list(whole["properties"])
    nullable = [field for field, schema in whole["properties"].items() if {"type": "null"} in schema.get("anyOf", [])]
    assert not set(streamed.get("required", [])) & set(nullable)


@by_endpoint
async def test_every_field_of_a_request_is_described(document: Json, path: str) -> None:
    described = document["components"]["schemas"][REQUESTS[path]]["properties"]
    assert set(described) == {field.name for field in structs.fields(SCHEMAS[path])}


@listed(BUILT)
async def test_what_is_served_fits(described: Described, path: str, name: str) -> None:
    request = described.request(REQUESTS[path])
    for value in BUILT[path][name]:
        request.validate(question(path) | {name: value})


@listed(UNBUILT)
async def test_what_is_not_served_does_not_fit(described: Described, path: str, name: str) -> None:
    request = described.request(REQUESTS[path])
    for value in UNBUILT[path][name].asking:
        assert not request.is_valid(question(path) | {name: value})
    for value in UNBUILT[path][name].neutral:
        request.validate(question(path) | {name: value})


EXAMPLES = {"string": "x", "integer": 104, "array": [104]}


def outside(schema: Json) -> Iterator[Any]:
    """Values just beyond each limit of a property."""
    for typed in schema.get("anyOf", [schema]):
        for keyword, limit in typed.items():
            match keyword:
                case "minimum":
                    yield limit - (1 if typed["type"] == "integer" else 0.001)
                case "maximum":
                    yield limit + (1 if typed["type"] == "integer" else 0.001)
                case "exclusiveMinimum":
                    yield limit
                case "minLength":
                    yield "x" * (limit - 1)
                case "maxLength":
                    yield "x" * (limit + 1)
                case "minItems" if limit:
                    yield []
                case "maxItems":
                    yield [EXAMPLES[typed["items"]["type"]]] * (limit + 1)


@by_endpoint
async def test_what_is_beyond_a_limit_is_refused_by_the_name_of_the_field(
    app: Litestar, document: Json, path: str
) -> None:
    tried = 0
    for name, schema in document["components"]["schemas"][REQUESTS[path]]["properties"].items():
        for value in outside(schema):
            beside = with_logprobs(path, 0) if name in NEEDS_LOGPROBS else {}
            error = error_of(await post(app, path, question(path) | beside | {name: value}), 400)
            assert error["param"] == name, value
            tried += 1
    assert tried > 40


FIELDS: list[dict[str, Any]] = [
    {},
    {"n": 2},
    {"return_token_ids": True},
    {"stop": "i", "include_stop_str_in_output": True},
    {"stop_token_ids": [105], "return_tokens_as_token_ids": True},
    {"echo": True},
]


@by_endpoint
async def test_answers_are_as_described(app: Litestar, described: Described, path: str) -> None:
    options = {"forces_usage": True, "tells_prompt_details": True, "tells_timing": True}
    detailed = structs.replace(SPECULATION, kept_by_step=[2, 1, 2], drafted_by_step=[2, 2, 2])
    telling = [
        application(ScriptedEngine(script), options=ServerOptions(**options))
        for script in (told(), drafted(), drafted(detailed))
    ]
    shown: list[dict[str, Any]] = [{}, with_logprobs(path, 0), with_logprobs(path, 1)]
    streamed: list[dict[str, Any]] = [
        {"prompt_logprobs": 1},
        {"stream": True},
        {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    ]
    for fields, rows, stream in product(FIELDS, shown, streamed):
        described.check(path, await post(app, path, question(path) | fields | rows | stream))
    for one, stream in product(telling, ({}, {"stream": True})):
        described.check(path, await post(one, path, question(path) | stream))
    text = {"return_prompt_text": True, "stream": True} if path == CHAT else {"prompt": [[104, 105], [104]]}
    described.check(path, await post(app, path, question(path) | text))


@by_endpoint
async def test_failures_are_as_described(described: Described, path: str) -> None:
    breaking = application(ScriptedEngine([*steps(104, 105)[:1], EngineFailure("gone")]), body_limit=200)
    for stream in (False, True):
        described.check(path, await post(breaking, path, question(path, stream=stream)))
    for body in (b"{", b"{}", json.dumps(question(path, model="other")).encode(), b" " * 201):
        described.check(path, await post(breaking, path, body))
    engine = ScriptedEngine(steps(104))
    await engine.aclose()
    described.check(path, await post(application(engine), path, question(path)))


async def test_other_routes_answer_as_described(app: Litestar, described: Described) -> None:
    engine = ScriptedEngine(steps(104))
    await engine.aclose()
    dead = application(engine)
    for path in ("/v1/models", "/version", "/health", "/metrics"):
        described.check(path, await get(app, path), "get")
    described.check("/health", await get(dead, "/health"), "get")


class TestAdapters:
    """Of a server whose clients may load and unload them."""

    app: Litestar = build_app(container(LoadingEngine()), updates_lora=True)
    document: Json = told_by(app)

    async def test_the_rest_of_this_module_holds(self, document: Json) -> None:
        await test_it_is_served(self.app, self.document)
        await test_every_route_is_described_and_no_other(self.app, self.document)
        await test_it_is_openapi_and_json_schema(self.document)
        assert self.document["components"]["schemas"].keys() - document["components"]["schemas"].keys() == {
            "LoadAdapterRequest",
            "UnloadAdapterRequest",
        }

    async def test_what_comes_is_described(self) -> None:
        described = Described(self.document)
        for path, takes, body in (
            ("/v1/load_lora_adapter", "LoadAdapterRequest", {"lora_name": "a", "lora_path": "/", "load_inplace": True}),
            ("/v1/unload_lora_adapter", "UnloadAdapterRequest", {"lora_name": "a"}),
        ):
            operation = self.document["paths"][path]["post"]
            content = operation["requestBody"]["content"]["application/json"]
            assert content["schema"] == {"$ref": f"#/components/schemas/{takes}"}
            request = described.request(takes)
            request.validate(body)
            reply = await post(self.app, path, body)
            described.check(path, reply)
            assert reply.status_code == 200
            for wrong in ({}, body | {"lora_name": ""}, body | {"lora_name": 1}, body | {"lora_path": ""}):
                if not request.is_valid(wrong):
                    described.check(path, await post(self.app, path, wrong))
            missing = {"lora_name": "b", "lora_path": "/gone"}
            request.validate(missing)
            described.check(path, await post(self.app, path, missing))


class TestScaleOut:
    """Of a server that is one part of several."""

    app: Litestar = application(
        ScriptedEngine(steps(104, 105, alternatives=[104, 33])),
        settings=HttpSettings(tokens_only=True, enable_tokenizer_info_endpoint=True),
    )
    document: Json = told_by(app)
    described = Described(document)

    async def test_the_rest_of_this_module_holds(self) -> None:
        await test_it_is_served(self.app, self.document)
        await test_every_route_is_described_and_no_other(self.app, self.document)
        await test_it_is_openapi_and_json_schema(self.document)

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("sampling", [{}, {"logprobs": 1, "prompt_logprobs": 1}])
    async def test_what_comes_of_a_round_trip_is_described(self, sampling: Json, stream: bool) -> None:
        for path in (CHAT, COMPLETIONS):
            asked = question(path, stream=stream, return_token_ids=True)
            rendered = await self.checked(f"{path}/render", asked)
            prompt = rendered if path == CHAT else rendered[0]
            prompt["sampling_params"] |= sampling
            await self.checked("/inference/v1/generate", prompt)
            generated = await self.checked("/inference/v1/generate", prompt | {"stream": False})
            told = (
                {"stream": True, "generate_chunk": generated}
                if stream
                else {"generate_response": generated, "generate_responses": [generated]}
            )
            request = "chat_request" if path == CHAT else "completion_request"
            await self.checked(f"{path}/derender", told | {request: asked | {"stream": False}})

    async def test_what_comes_of_others_is_described(self) -> None:
        await self.checked("/tokenize", {"prompt": "ab", "return_token_strs": True})
        await self.checked("/tokenize", question(CHAT))
        await self.checked("/detokenize", {"tokens": [97]})
        for path in ("/inference/v1/abort_requests", "/abort_requests"):
            self.described.check(path, await post(self.app, path, {"request_ids": ["a"]}))
        for path in self.document["paths"].keys() & {*SCALE_OUT, "/tokenize", "/detokenize", "/abort_requests"}:
            self.described.check(path, await post(self.app, path, {}))

    async def checked(self, path: str, body: Json) -> Any:
        schema = self.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        jsonschema_rs.validator_for(schema | {"components": self.document["components"]}).validate(body)
        response = await post(self.app, path, body)
        assert response.status_code == 200, response.text
        self.described.check(path, response)
        return None if body.get("stream") and path.endswith("generate") else response.json()


class TestFlags:
    async def test_a_key_is_told_of_where_one_is_needed(self) -> None:
        app = server("--api-key", "k")
        document = (await get(app, "/openapi.json")).json()
        assert document["components"]["securitySchemes"] == {"key": {"type": "http", "scheme": "bearer"}}
        for path, operations in document["paths"].items():
            for operation in operations.values():
                is_guarded = path.startswith("/v1")
                assert ("401" in operation["responses"], "security" in operation) == (is_guarded, is_guarded)
        Described(document).check("/v1/models", await get(app, "/v1/models"), "get")
        assert "securitySchemes" not in (await get(server(), "/openapi.json")).json()["components"]

    @pytest.mark.parametrize("root", ["/api", "/api/", "api"])
    async def test_a_prefix_is_where_the_routes_are(self, root: str) -> None:
        document = (await get(server("--root-path", root), "/api/openapi.json")).json()
        assert document["servers"] == [{"url": "/api"}]
        assert "servers" not in (await get(server(), "/openapi.json")).json()

    @pytest.mark.parametrize("path", sorted(UNDESCRIBED))
    async def test_all_of_it_may_be_left_out(self, path: str) -> None:
        assert (await get(server(), path)).status_code == 200
        error_of(await get(server("--disable-fastapi-docs"), path), 404, "NotFoundError")


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
async def test_a_page_shows_it_from_beside_itself(app: Litestar, path: str) -> None:
    """Without a slash in front, so that it is found behind a prefix too."""
    response = await get(app, path)
    assert response.headers["content-type"].startswith("text/html")
    assert '"openapi.json"' in response.text


def test_it_is_not_made_before_it_is_asked_for() -> None:
    source = "import sys, adapters.bootstrap.app; print(*(name for name in sys.modules if 'openapi.document' in name))"
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
