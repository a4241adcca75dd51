"""Which of the engine's grammar libraries holds an output to its form.

vLLM's frontend decides that, with the libraries at hand: what the first of them refuses is tried with the next. Here
are the rules by which they refuse, as far as a schema or a pattern shows it without them; the rest the engine refuses.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from domain.errors import RequestError
from domain.structured_outputs import Form, Grammar, JsonObject, JsonSchema, Regex, StructuredOutputs

Backend = Literal["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"]
"""What an operator may choose; `auto` is a choice per request."""

Schema = Mapping[str, Any]

_STRING_FORMATS: Final = (
    *("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "json-pointer", "relative-json-pointer"),
    *("time", "uri", "uri-reference", "uri-template", "uuid"),
)
"""Those that xgrammar has a grammar for."""

_ARRAY_KEYS: Final = ("uniqueItems", "contains", "minContains", "maxContains")

_ESCAPED_OR_CLASS: Final = re.compile(r"(?s)\\[^pP]|\[\^?(?!\])(?:\\.|[^\]\\])*+(?:\]|\\?\Z)")
"""A class without an end takes the rest, so that no pattern is gone through more than once."""

_PYTHON_OR_PERL: Final = re.compile(r"\\[pP]|\(\?P<|\(\?[a-zA-Z-]+[:)]|[*+][*+]|\[\]")
"""Unicode classes, Python's groups, flags, stacked quantifiers, a class that begins with its own end."""


class FormNotSupported(RequestError):
    """The library that the engine is set to does not know such a form."""


def backend_for(structured: StructuredOutputs, chosen: Backend) -> str:
    """The library's name. Raises FormNotSupported, with the caller's field, where the operator's choice cannot."""
    form = structured.form
    if chosen == "auto":
        return _first_that_can(form)
    unable = {
        "xgrammar": isinstance(form, JsonSchema) and xgrammar_lacks(form.schema),
        "outlines": isinstance(form, JsonObject | Grammar),
        "lm-format-enforcer": isinstance(form, Grammar),
    }
    if unable.get(chosen):
        message = f"{structured.param} asks for a form that the engine, set to {chosen}, does not know."
        raise FormNotSupported(message, structured.param)
    return chosen


def _first_that_can(form: Form) -> str:
    match form:
        case JsonSchema(schema) if xgrammar_lacks(schema):
            return "outlines" if _any_schema(schema, lambda one: "patternProperties" in one) else "guidance"
        case Regex(pattern) if _PYTHON_OR_PERL.search(_ESCAPED_OR_CLASS.sub("", pattern)):
            return "guidance"
    return "xgrammar"


def xgrammar_lacks(schema: Schema) -> bool:
    """Whether anything in the schema would be passed over by xgrammar, or not be held to beside something else."""
    return _any_schema(schema, _is_lacking)


def _any_schema(schema: Schema, lacks: Callable[[Schema], bool]) -> bool:
    """Objects in objects and in lists, but in no list of lists. Same as vLLM."""
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if lacks(one):
            return True
        for value in one.values():
            waiting += [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, Mapping)]
    return False


def _is_lacking(schema: Schema) -> bool:
    types = schema.get("type")
    types = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    alternatives = schema.get("allOf")
    return (
        (isinstance(alternatives, list) and len(alternatives) > 1)
        or ("multipleOf" in schema and ("integer" in types or "number" in types))
        or ("array" in types and any(key in schema for key in _ARRAY_KEYS))
        or ("string" in types and _is_lacking_string(schema))
        or ("object" in types and _is_lacking_object(schema))
    )


def _is_lacking_string(schema: Schema) -> bool:
    known = "format" not in schema or schema["format"] in _STRING_FORMATS
    return not known or _is_pattern_of_bounded_length(schema)


def _is_lacking_object(schema: Schema) -> bool:
    names, patterns = schema.get("propertyNames"), schema.get("patternProperties")
    if "propertyNames" in schema and (
        (isinstance(names, Mapping) and _is_pattern_of_bounded_length(names))
        or "properties" in schema
        or "patternProperties" in schema
        or schema.get("unevaluatedProperties", True) is not True
    ):
        return True
    return isinstance(patterns, Mapping) and ("properties" in schema or len(patterns) > 1)


def _is_pattern_of_bounded_length(schema: Schema) -> bool:
    return ("pattern" in schema or "format" in schema) and ("minLength" in schema or "maxLength" in schema)
