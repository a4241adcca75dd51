"""What routes take of a request's types, where the types alone do not say.

Only what is wrong whatever else a request says: what depends on other fields or on the model is told with the 400.
"""

from typing import Any

from adapters.inbound.http.openai.chat.lower import UNBUILT_IN_MESSAGE
from adapters.inbound.http.openai.completions.schema import MOST_PROMPTS
from adapters.inbound.http.openai.exchange import LONGEST_ID
from adapters.inbound.http.openai.sampling import LONGEST_SALT, MOST_CHOICES, MOST_STOP_STRINGS
from application.services.lora import LONGEST_NAME
from domain.sampling import MOST_SCORED_IDS

Schema = dict[str, Any]
Narrowed = dict[str, Schema]
"""By property: keywords that join those of its type, or all of them where there are alternatives."""

NULL: Schema = {"type": "null"}
TEXT: Schema = {"type": "string", "minLength": 1}
TOKEN_IDS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, "minItems": 1}


def _array(items: Schema, least: int, most: int) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


PARAMS: Narrowed = {
    "temperature": {"minimum": 0, "maximum": 2},
    "top_p": {"exclusiveMinimum": 0, "maximum": 1},
    "top_k": {"minimum": -1},
    "min_p": {"minimum": 0, "maximum": 1},
    "frequency_penalty": {"minimum": -2, "maximum": 2},
    "presence_penalty": {"minimum": -2, "maximum": 2},
    "repetition_penalty": {"exclusiveMinimum": 0},
    "allowed_token_ids": {"minItems": 1},
    "logprob_token_ids": {"minItems": 1, "maxItems": MOST_SCORED_IDS},
    "n": {"minimum": 1, "maximum": MOST_CHOICES},
    "min_tokens": {"minimum": 0},
    "prompt_logprobs": {"minimum": -1},
}

SCHEDULING: Narrowed = {
    "request_id": {"maxLength": LONGEST_ID},
    "cache_salt": {"minLength": 1, "maxLength": LONGEST_SALT, "pattern": r"^[^@/\\\x00]*$"},
}

SAMPLING = PARAMS | SCHEDULING | {"stop": {"anyOf": [TEXT, _array(TEXT, 0, MOST_STOP_STRINGS), NULL]}}

NARROWED: dict[str, Narrowed] = {
    "ChatRequest": SAMPLING
    | {
        "messages": {"minItems": 1},
        "max_tokens": {"minimum": 1},
        "max_completion_tokens": {"minimum": 1},
        "top_logprobs": {"minimum": -1},
    },
    "CompletionRequest": SAMPLING
    | {
        "prompt": {
            "anyOf": [TEXT, TOKEN_IDS, _array({"type": "string"}, 1, MOST_PROMPTS), _array(TOKEN_IDS, 1, MOST_PROMPTS)]
        },
        "max_tokens": {"minimum": 0},
        "logprobs": {"minimum": -1},
    },
    "GenerateRequest": SCHEDULING | {"token_ids": {"minItems": 1}},
    "SamplingParamsFields": PARAMS | {"max_tokens": {"minimum": 1}, "logprobs": {"minimum": -1}},
    "LoadAdapterRequest": {"lora_name": {"minLength": 1, "maxLength": LONGEST_NAME}, "lora_path": {"minLength": 1}},
    "UnloadAdapterRequest": {"lora_name": {"minLength": 1}},
    "ChatMessage": {name: {"enum": [None, False, 0, "", [], {}]} for name in UNBUILT_IN_MESSAGE},
    "ContentPart": {"type": {"const": "text"}, "text": {"anyOf": [{"type": "string"}]}},
}

REQUIRED: dict[str, list[str]] = {"CompletionRequest": ["prompt"], "ContentPart": ["text"]}
"""Beside what the types require."""


def narrow(name: str, component: Schema) -> Schema:
    """The component of that name, with what its properties must be beside their types."""
    properties = component.get("properties", {})
    for field, keywords in NARROWED.get(name, {}).items():
        if "anyOf" in keywords:
            properties[field] = properties[field] | keywords
        else:
            typed, *_ = properties[field].get("anyOf", [properties[field]])
            typed.update(keywords)
    if name in REQUIRED:
        component["required"] = [*component.get("required", []), *REQUIRED[name]]
        for field in REQUIRED[name]:
            del properties[field]["default"]
    return component
