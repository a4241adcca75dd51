"""What the OpenAPI document says of an answer, held against one."""

import json
from functools import cache

import httpx
import jsonschema_rs

from tests.http.answers import Json, frames

PLAIN = ["/v1/chat/completions", "/v1/completions", "/v1/models", "/health", "/version", "/metrics"]
"""Paths of every server, but for those of its tokenizer."""
OF_ADAPTERS = ["/v1/load_lora_adapter", "/v1/unload_lora_adapter"]
OF_TOKENS = [
    "/tokenize",
    "/detokenize",
    "/inference/v1/generate",
    "/inference/v1/abort_requests",
    "/v1/chat/completions/render",
    "/v1/chat/completions/derender",
    "/v1/completions/render",
    "/v1/completions/derender",
]


class Described:
    """By a document."""

    def __init__(self, document: Json) -> None:
        self.document = document
        self._strict = json.loads(json.dumps(document["components"]))
        for component in self._strict["schemas"].values():
            if "properties" in component:
                component["additionalProperties"] = False
        self._validator = cache(self._make)

    def request(self, name: str) -> jsonschema_rs.Validator:
        """Of a body."""
        return jsonschema_rs.validator_for(reference(name) | {"components": self.document["components"]})

    def check(self, path: str, response: httpx.Response, method: str = "post") -> None:
        """What came is one of the things that may come, and has nothing that is not described."""
        described = self.document["paths"][path][method]["responses"][str(response.status_code)].get("content")
        if described is None:
            assert response.content == b""
            return
        content_type = response.headers["content-type"].partition(";")[0]
        schema = described[content_type]["schema"]
        if content_type != "text/event-stream":
            body = response.json() if content_type == "application/json" else response.text
            self._validator(json.dumps(schema)).validate(body)
            return
        *events, last = frames(response)
        assert last == b"data: [DONE]"
        _, carried = schema["properties"]["data"]["anyOf"]
        event = self._validator(json.dumps(carried["contentSchema"]))
        for frame in events:
            event.validate(json.loads(frame.removeprefix(b"data: ")))

    def _make(self, schema: str) -> jsonschema_rs.Validator:
        return jsonschema_rs.validator_for(json.loads(schema) | {"components": self._strict})


def reference(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}
