"""The routes of the OpenAPI document: what each takes and what it answers with."""

from typing import Any

Description = dict[str, Any]

HEADERS = {
    "X-Request-Id": "The answer's id is made of it.",
    "X-Session-ID": "Whose request it is, where the body does not say.",
    "X-Vllm-Priority": "An integer; wins over the body's priority.",
    "X-data-parallel-rank": "Which of several engines answers, counted from 0.",
}

UNAUTHORIZED_BODY: Description = {
    "type": "object",
    "properties": {"error": {"const": "Unauthorized"}},
    "required": ["error"],
}
UNAUTHORIZED: Description = {
    "description": "No key, or none that opens.",
    "content": {"application/json": {"schema": UNAUTHORIZED_BODY}},
}


def paths() -> dict[str, dict[str, Description]]:
    """All that a server may have: which of them it has is in its flags."""
    return _openai_paths() | _adapter_paths() | vllm_paths()


def _openai_paths() -> dict[str, dict[str, Description]]:
    return {
        "/v1/chat/completions": {
            "post": _generation("Answers a conversation", "chat_completions", "ChatRequest", "ChatBody", "ChatChunk")
        },
        "/v1/completions": {
            "post": _generation(
                "Goes on with a text", "completions", "CompletionRequest", "CompletionBody", "CompletionChunk"
            )
        },
        "/v1/models": {
            "get": {
                "summary": "What is served",
                "operationId": "list_models",
                "responses": {"200": _json("Each name that requests may use.", "ModelList")},
            }
        },
        "/health": {
            "get": {
                "summary": "Whether the engine is alive",
                "operationId": "health",
                "responses": {"200": {"description": "It is."}, "503": {"description": "It is not."}},
            }
        },
        "/version": {
            "get": {
                "summary": "What is running",
                "operationId": "version",
                "responses": {"200": _json("The engine's version, and this server's.", "Versions")},
            }
        },
        "/metrics": {
            "get": {
                "summary": "Counts, as Prometheus reads them",
                "operationId": "metrics",
                "responses": {
                    "200": {
                        "description": "Prometheus' text format, version 0.0.4.",
                        "content": {"text/plain": {"schema": {"type": "string"}}},
                    }
                },
            }
        },
    }


def _adapter_paths() -> dict[str, dict[str, Description]]:
    """Of a server whose clients may load and unload adapters."""
    failures = {"500": _error("The engine cannot load it."), "503": _error("The server is shutting down.")}
    loads = _update("Loads an adapter", "load_lora_adapter", "LoadAdapterRequest", "There is none at the path.")
    return {
        "/v1/load_lora_adapter": {"post": loads | {"responses": loads["responses"] | failures}},
        "/v1/unload_lora_adapter": {
            "post": _update(
                "Unloads an adapter", "unload_lora_adapter", "UnloadAdapterRequest", "There is none of that name."
            )
        },
    }


def _update(summary: str, name: str, takes: str, missing: str) -> Description:
    return {
        "summary": summary,
        "operationId": name,
        "requestBody": _body(takes),
        "responses": {
            "200": {"description": "It is done.", "content": {"text/plain": {"schema": {"type": "string"}}}},
            "400": _error("The request cannot be served; `param` names the field, where there is one."),
            "404": _error(missing),
            "413": _error("The body is larger than this server takes."),
        },
    }


def _generation(summary: str, name: str, takes: str, gives: str, streams: str) -> Description:
    return {
        "summary": summary,
        "operationId": name,
        "parameters": [
            {"in": "header", "name": header, "description": says, "required": False, "schema": {"type": "string"}}
            for header, says in HEADERS.items()
        ],
        "requestBody": _body(takes),
        "responses": {
            "200": {
                "description": "The answer, in one piece or as server-sent events if `stream` is true.",
                "content": {
                    "application/json": {"schema": _ref(gives)},
                    "text/event-stream": {"schema": _event({"anyOf": [_ref(streams), _ref("ErrorEnvelope")]})},
                },
            },
            "400": _error("The request cannot be served; `param` names the field, where there is one."),
            "404": _error("The model is not served here."),
            "413": _error("The body is larger than this server takes."),
            "500": _error("The engine failed."),
            "503": _error("The engine takes no request now."),
        },
    }


def _body(name: str) -> Description:
    return {"required": True, "content": {"application/json": {"schema": _ref(name)}}}


def _event(schema: Description) -> Description:
    """OpenAPI 3.1 has no place for events: its readers take the schema of a stream for that of each."""
    carried = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema}
    return {
        "type": "object",
        "description": "An event: a chunk, an error that is the end, or [DONE].",
        "properties": {"data": {"anyOf": [{"const": "[DONE]"}, carried]}},
        "required": ["data"],
    }


def _error(description: str) -> Description:
    return _json(description, "ErrorEnvelope")


def _json(description: str, name: str) -> Description:
    return {"description": description, "content": {"application/json": {"schema": _ref(name)}}}


def _ref(name: str) -> Description:
    return {"$ref": f"#/components/schemas/{name}"}


def vllm_paths() -> dict[str, dict[str, Description]]:
    generate = _generation("Goes on with tokens", "generate", "GenerateRequest", "GenerateBody", "GenerateChunk")
    return {
        "/tokenize": _call("A text or a conversation in tokens", "tokenize", "TokenizeRequest", "Tokenized"),
        "/detokenize": _call("What tokens read as", "detokenize", "DetokenizeRequest", "Detokenized"),
        "/tokenizer_info": {
            "get": {
                "summary": "How the tokenizer is configured",
                "operationId": "tokenizer_info",
                "responses": {
                    "200": {
                        "description": "About what its tokenizer_config.json says.",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    }
                },
            }
        },
        "/v1/chat/completions/render": _call(
            "A conversation, to generate from", "render_chat", "ChatRequest", "Rendered"
        ),
        "/v1/completions/render": _call(
            "Texts, to generate from",
            "render_completions",
            "CompletionRequest",
            {"type": "array", "items": _ref("Rendered")},
        ),
        "/inference/v1/generate": {"post": generate},
        "/inference/v1/abort_requests": _abort("abort_requests"),
        "/abort_requests": _abort("abort_requests_unguarded"),
        "/v1/chat/completions/derender": _call(
            "Generated tokens as an answer to a conversation",
            "derender_chat",
            ["DerenderChat", "DerenderChatChunk"],
            ["ChatBody", "DerenderedChat"],
        ),
        "/v1/completions/derender": _call(
            "Generated tokens as a completion",
            "derender_completions",
            ["DerenderCompletion", "DerenderCompletionChunk"],
            ["CompletionBody", "DerenderedCompletion"],
        ),
    }


def _call(
    summary: str, name: str, takes: str | list[str], gives: str | list[str] | Description
) -> dict[str, Description]:
    return {
        "post": {
            "summary": summary,
            "operationId": name,
            "requestBody": {"required": True, "content": {"application/json": {"schema": _one_of(takes)}}},
            "responses": {
                "200": {"description": "Done.", "content": {"application/json": {"schema": _one_of(gives)}}},
                "400": _error("The request cannot be served; `param` names the field, where there is one."),
                "404": _error("The model is not served here."),
                "413": _error("The body is larger than this server takes."),
            },
        }
    }


def _abort(name: str) -> dict[str, Description]:
    return {
        "post": {
            "summary": "Ends generations by the ids of their requests",
            "operationId": name,
            "requestBody": _body("AbortRequest"),
            "responses": {
                "200": {"description": "None of them runs any more."},
                "400": _error("The request cannot be served; `param` names the field, where there is one."),
                "413": _error("The body is larger than this server takes."),
            },
        }
    }


def _one_of(names: str | list[str] | Description) -> Description:
    if isinstance(names, dict):
        return names
    return _ref(names) if isinstance(names, str) else {"anyOf": [_ref(name) for name in names]}
