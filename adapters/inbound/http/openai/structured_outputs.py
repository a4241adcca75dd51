"""`response_format` and `structured_outputs`, which chat and completions share, and how they are lowered."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from domain.structured_outputs import (
    Choice,
    Form,
    FormNotUsable,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutputs,
)

KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")


class NamedSchema(Struct, kw_only=True):
    name: str
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    """Accepted and unused: every schema is held to. Same as vLLM."""


class ResponseFormat(Struct, kw_only=True):
    """OpenAI's three types, and a structural tag."""

    type: Literal["text", "json_object", "json_schema", "structural_tag"]
    json_schema: NamedSchema | None = None
    format: Any = None
    structures: list[dict[str, Any]] | None = None
    triggers: list[str] | None = None


class StructuredOutputFields(Struct, kw_only=True):
    """Exactly one of KINDS is given."""

    json: str | dict[str, Any] | None = None
    """A schema, or its JSON."""
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | None = None
    """JSON."""
    disable_any_whitespace: bool | None = None
    disable_additional_properties: bool | None = None
    whitespace_pattern: str | None = None


def lower_structured_outputs(
    fields: StructuredOutputFields | None, response_format: ResponseFormat | None
) -> StructuredOutputs | None:
    """Same as vLLM: of one kind, that of `response_format` counts; two kinds contradict each other.

    Raises FormNotUsable."""
    asked, param = {}, "structured_outputs"
    if fields is not None:
        asked = {kind: value for kind in KINDS if (value := getattr(fields, kind)) is not None}
        _check_one(asked, param)
    if response_format is not None and response_format.type != "text":
        param = "response_format"
        asked |= _asked_by(response_format)
        _check_one(asked, param)
    if not asked:
        return None
    ((kind, value),) = asked.items()
    fields = fields or StructuredOutputFields()
    return StructuredOutputs(
        form=_form(kind, value, param),
        disable_any_whitespace=bool(fields.disable_any_whitespace),
        disable_additional_properties=bool(fields.disable_additional_properties),
        whitespace_pattern=fields.whitespace_pattern,
        param=param,
    )


def _check_one(asked: Mapping[str, Any], param: str) -> None:
    if len(asked) != 1:
        raise FormNotUsable(f"{param} must leave exactly one of {', '.join(KINDS)}, not {len(asked)}.", param)


def _asked_by(response_format: ResponseFormat) -> dict[str, Any]:
    match response_format.type:
        case "json_object":
            return {"json_object": True}
        case "json_schema":
            named = response_format.json_schema
            if named is None or named.schema is None:
                message = "response_format of type json_schema needs a json_schema with a schema."
                raise FormNotUsable(message, "response_format")
            return {"json": named.schema}
    names = ("format", "structures", "triggers")
    given = {name: value for name in names if (value := getattr(response_format, name)) is not None}
    return {"structural_tag": {"type": "structural_tag", **given}}


def _form(kind: str, value: Any, param: str) -> Form:
    match kind:
        case "json":
            return JsonSchema(_document(value, kind, param))
        case "regex":
            return Regex(value)
        case "choice":
            return Choice(value)
        case "grammar":
            return Grammar(value)
        case "structural_tag":
            return StructuralTag(_document(value, kind, param))
    if not value:
        raise FormNotUsable(f"{param}: json_object must be true, or left out.", param)
    return JsonObject()


def _document(value: str | dict[str, Any], name: str, param: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    try:
        document = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise FormNotUsable(f"{param}: {name} must be the JSON of an object.", param)
    return document
