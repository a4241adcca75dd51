"""The OpenAPI document: the routes (paths.py), and the schemas of what they take and give."""

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import msgspec
from litestar.utils import normalize_path
from msgspec import NODEFAULT, Struct, structs

from adapters.inbound.http.door import GUARDED
from adapters.inbound.http.errors import ErrorEnvelope
from adapters.inbound.http.openai.chat.encode import ChatBody
from adapters.inbound.http.openai.chat.schema import ChatRequest
from adapters.inbound.http.openai.completions.encode import CompletionBody
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.models import ModelList
from adapters.inbound.http.openai.sampling import Unbuilt
from adapters.inbound.http.openapi.narrowing import Schema, narrow
from adapters.inbound.http.openapi.paths import UNAUTHORIZED, paths
from adapters.inbound.http.openapi.shapes import (
    ChatChunk,
    ChatLogprobs,
    CompletionChunk,
    CompletionLogprobs,
    GenerateChunk,
    PromptToken,
)
from adapters.inbound.http.ops.version import Versions
from adapters.inbound.http.vllm.derender.encode import DerenderedChat, DerenderedCompletion
from adapters.inbound.http.vllm.derender.schema import (
    DerenderChat,
    DerenderChatChunk,
    DerenderCompletion,
    DerenderCompletionChunk,
)
from adapters.inbound.http.vllm.generate.encode import GenerateBody
from adapters.inbound.http.vllm.generate.schema import AbortRequest, GenerateRequest, SamplingParamsFields
from adapters.inbound.http.vllm.lora import LoadAdapterRequest, UnloadAdapterRequest
from adapters.inbound.http.vllm.render.encode import Rendered
from adapters.inbound.http.vllm.tokenize.encode import Detokenized, Tokenized
from adapters.inbound.http.vllm.tokenize.schema import DetokenizeRequest, TokenizeRequest

SCHEMAS = "#/components/schemas/{name}"
REQUESTS: list[type[Struct]] = [
    *(ChatRequest, CompletionRequest, TokenizeRequest, DetokenizeRequest, LoadAdapterRequest, UnloadAdapterRequest),
    *(GenerateRequest, SamplingParamsFields, AbortRequest),
    *(DerenderChat, DerenderChatChunk, DerenderCompletion, DerenderCompletionChunk),
]
ANSWERS: list[type[Struct]] = [
    *(ChatBody, ChatChunk, ChatLogprobs, CompletionBody, CompletionChunk, CompletionLogprobs, PromptToken),
    *(ModelList, Versions, ErrorEnvelope, Tokenized, Detokenized),
    *(Rendered, GenerateBody, GenerateChunk, DerenderedChat, DerenderedCompletion),
]

DESCRIPTION = """An OpenAI-compatible frontend for vLLM's engine. What is not listed here is answered too: a path with \
404, a method with 405 and what is allowed, both in the envelope of every error."""


def build(served: Sequence[str], root_path: str | None, asks_for_key: bool) -> dict[str, Any]:
    described = {path: operations for path, operations in paths().items() if path in served}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "Northbound", "version": version("northbound"), "description": DESCRIPTION},
        "paths": described,
        "components": {"schemas": _needed(described, _requests() | _answers())},
    }
    if root_path:
        document["servers"] = [{"url": normalize_path(root_path)}]
    if asks_for_key:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for path, operations in document["paths"].items():
            if path.startswith(GUARDED):
                for operation in operations.values():
                    operation["security"] = [{"key": []}]
                    operation["responses"]["401"] = UNAUTHORIZED
    return document


def _needed(described: Any, schemas: dict[str, Schema]) -> dict[str, Schema]:
    """Those that the paths refer to, and those that these refer to."""
    needed: dict[str, Schema] = {}
    look_at = [described]
    while look_at:
        for name in _references(look_at.pop()):
            if name not in needed:
                needed[name] = schemas[name]
                look_at.append(schemas[name])
    return {name: schema for name, schema in schemas.items() if name in needed}


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].rpartition("/")[2]
        node = list(node.values())
    if isinstance(node, list):
        for one in node:
            yield from _references(one)


def _requests() -> dict[str, Schema]:
    _, components = msgspec.json.schema_components(REQUESTS, ref_template=SCHEMAS)
    for request in REQUESTS:
        properties = components[request.__name__]["properties"]
        properties |= {field.encode_name: _unbuilt(field) for field in structs.fields(request) if field.type == Unbuilt}
    return {name: narrow(name, component) for name, component in components.items()}


def _unbuilt(field: structs.FieldInfo) -> Schema:
    default = field.default if field.default_factory is NODEFAULT else field.default_factory()
    values = [default] if default is None else [default, None]
    return {"enum": values, "default": default, "description": "Not supported by this server yet."}


def _answers() -> dict[str, Schema]:
    _, components = msgspec.json.schema_components(ANSWERS, ref_template=SCHEMAS)
    for component in components.values():
        _have_all(component)
    scores = {"ChatChoice": "ChatLogprobs", "CompletionChoice": "CompletionLogprobs"}
    for name, logprobs in scores.items():
        components[name]["properties"]["logprobs"] = _or_null({"$ref": SCHEMAS.format(name=logprobs)})
    by_id = {"type": "object", "additionalProperties": {"$ref": SCHEMAS.format(name="PromptToken")}}
    for name in ("ChatBody", "CompletionChoice"):
        prompt_logprobs = {"type": "array", "items": _or_null(by_id)}
        components[name]["properties"]["prompt_logprobs"] = _or_null(prompt_logprobs)
    return components


def _have_all(component: Schema) -> None:
    """An answer has every field of its Struct: what has a default there is not left out."""
    properties = component.get("properties", {})
    always = [name for name in properties if "default" in properties[name] or name in component["required"]]
    for name in always:
        properties[name].pop("default", None)
    if always:
        component["required"] = always


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}
