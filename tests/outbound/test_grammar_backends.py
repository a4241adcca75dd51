"""Which grammar library vLLM's frontend would choose, and what is refused where the operator chose one."""

from typing import Any

import pytest

from adapters.outbound.vllm_engine.grammar_backends import Backend, FormNotSupported, backend_for
from domain.structured_outputs import (
    Choice,
    Form,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutputs,
)

STRING = {"type": "string"}
FORMATS = (
    "email date time date-time duration ipv4 ipv6 hostname uuid uri uri-reference uri-template json-pointer"
    " relative-json-pointer"
)

XGRAMMAR_TAKES: dict[str, dict[str, Any]] = {
    "anything": {},
    "properties": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "multiple of no number": {"multipleOf": 2, **STRING},
    "one of allOf": {"allOf": [STRING]},
    "pattern": {**STRING, "pattern": "a+"},
    "length": {**STRING, "minLength": 1, "maxLength": 2},
    "names": {"type": "object", "propertyNames": {"pattern": "a"}},
    "bounded names": {"type": "object", "propertyNames": {"maxLength": 3}},
    "unevaluated properties": {"type": "object", "propertyNames": True, "unevaluatedProperties": True},
    "one pattern of properties": {"type": "object", "patternProperties": {"a": STRING}},
    "unique items of no array": {"uniqueItems": True},
    "format of no string": {"type": "integer", "format": "int32"},
    "lacking in a list of lists": {"enum": [[{"type": "integer", "multipleOf": 2}]]},
    "properties and their patterns of no object": {"properties": {}, "patternProperties": {"a": {}, "b": {}}},
} | {name: {**STRING, "format": name} for name in FORMATS.split()}

GUIDANCE_TAKES: dict[str, dict[str, Any]] = {
    "multiple": {"type": "integer", "multipleOf": 2},
    "multiple of a number": {"type": "number", "multipleOf": 2},
    "multiple or null": {"type": ["null", "integer"], "multipleOf": 2},
    "unique items": {"type": "array", "uniqueItems": True},
    "contained": {"type": "array", "contains": STRING},
    "at least contained": {"type": "array", "minContains": 1},
    "at most contained": {"type": ["array"], "maxContains": 1},
    "unknown format": {**STRING, "format": "nope"},
    "format that is no text": {**STRING, "format": ["email"]},
    "pattern of bounded length": {**STRING, "pattern": "a", "minLength": 1},
    "format of bounded length": {**STRING, "format": "email", "maxLength": 9},
    "names of bounded length": {"type": "object", "propertyNames": {"pattern": "a", "maxLength": 3}},
    "names and properties": {"type": "object", "propertyNames": {}, "properties": {}},
    "names and the rest": {"type": "object", "propertyNames": {}, "unevaluatedProperties": False},
    "two of allOf": {"allOf": [STRING, {"enum": ["a"]}]},
    "inside": {"type": "object", "properties": {"a": {"anyOf": [{}, {"type": "integer", "multipleOf": 2}]}}},
}

OUTLINES_TAKES: dict[str, dict[str, Any]] = {
    "patterns and properties": {"type": "object", "patternProperties": {"a": {}}, "properties": {}},
    "patterns and names": {"type": "object", "patternProperties": {}, "propertyNames": {}},
    "two patterns": {"type": "object", "patternProperties": {"a": {}, "b": {}}},
    "a pattern elsewhere": {"allOf": [{}, {}], "$defs": {"x": {"patternProperties": {"a": {}}}}},
}


def chosen(form: Form, backend: Backend = "auto") -> str:
    return backend_for(StructuredOutputs(form=form, param="response_format"), backend)


@pytest.mark.parametrize("name", XGRAMMAR_TAKES)
def test_schemas_that_xgrammar_knows(name: str) -> None:
    assert chosen(JsonSchema(XGRAMMAR_TAKES[name])) == "xgrammar"
    assert chosen(JsonSchema({"items": [XGRAMMAR_TAKES[name]]})) == "xgrammar"


@pytest.mark.parametrize("name", GUIDANCE_TAKES)
def test_schemas_that_only_guidance_knows(name: str) -> None:
    assert chosen(JsonSchema(GUIDANCE_TAKES[name])) == "guidance"
    assert chosen(JsonSchema({"items": [GUIDANCE_TAKES[name]]})) == "guidance"


@pytest.mark.parametrize("name", OUTLINES_TAKES)
def test_schemas_that_neither_knows(name: str) -> None:
    assert chosen(JsonSchema(OUTLINES_TAKES[name])) == "outlines"


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a+",
        "(?:a|b)",
        "(?<x>a)",
        "a*?",
        "a+?",
        "a{2,3}",
        r"\d\w\s",
        r"\\p",
        r"[\p{L}]",
        r"\(\?P<",
        "[*+][+*]",
        "[^]]",
        r"[\]*+]",
        "[^]",
        "[a++",
        "[a\\",
    ],
)
def test_patterns_that_xgrammar_reads(pattern: str) -> None:
    assert chosen(Regex(pattern)) == "xgrammar"


@pytest.mark.parametrize("repeated", ["[", "[^", "[a", "[\\", "(?", "(?a", "\\", "[\n"])
def test_a_pattern_is_gone_through_once(repeated: str) -> None:
    """Twice as long would take four times as long: with a million characters, for ever."""
    assert chosen(Regex(repeated * 500_000)) == "xgrammar"


@pytest.mark.parametrize(
    "pattern",
    [r"\p{L}+", r"\P{L}", r"\\\p{L}", "(?P<x>a)", "(?i)a", "(?i:a)", "(?s-i).", "a**", "a++", "a*+", "[]a]"],
)
def test_patterns_that_only_guidance_reads(pattern: str) -> None:
    assert chosen(Regex(pattern)) == "guidance"


@pytest.mark.parametrize(
    "form",
    [
        JsonObject(),
        Choice(["a"]),
        Grammar('root ::= "a"'),
        Grammar('start: "a"'),
        StructuralTag({"format": {"type": "or"}}),
    ],
)
def test_all_else_is_xgrammar_s(form: Form) -> None:
    assert chosen(form) == "xgrammar"


ANY: list[Form] = [
    JsonObject(),
    JsonSchema({}),
    Regex("a"),
    Choice(["a"]),
    Grammar("a"),
    StructuralTag({"format": {"type": ""}}),
]


@pytest.mark.parametrize(
    ("backend", "lacks"),
    [
        ("xgrammar", []),
        ("guidance", []),
        ("outlines", [JsonObject, Grammar]),
        ("lm-format-enforcer", [Grammar]),
    ],
)
def test_what_the_operator_chose_counts(backend: Backend, lacks: list[type[Form]]) -> None:
    for form in ANY:
        if type(form) in lacks:
            with pytest.raises(FormNotSupported, match=backend) as refused:
                chosen(form, backend)
            assert refused.value.param == "response_format"
        else:
            assert chosen(form, backend) == backend


def test_xgrammar_alone_refuses_what_it_would_pass_over() -> None:
    schema = JsonSchema({"type": "integer", "multipleOf": 2})
    with pytest.raises(FormNotSupported):
        chosen(schema, "xgrammar")
    assert chosen(schema, "outlines") == "outlines"
