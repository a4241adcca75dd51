"""Forms that an output can be held to, and those that mean nothing."""

from typing import Any

import pytest

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


def nested(depth: int) -> dict[str, Any]:
    """Objects and lists in turn, `depth` of them."""
    inner: Any = 1
    for level in range(depth):
        inner = [inner] if (depth - level) % 2 == 0 else {"a": inner}
    assert isinstance(inner, dict)
    return inner


def tag(**structure: Any) -> StructuralTag:
    """The older notation, with one structure."""
    whole = {"begin": "<f=x>", "schema": {}, "end": "</f>"} | structure
    return StructuralTag({"structures": [whole], "triggers": ["<g", "<f="]})


USABLE: dict[str, Form] = {
    "any schema": JsonSchema({}),
    "deepest schema": JsonSchema(nested(64)),
    "object": JsonObject(),
    "regex": Regex("a+"),
    "empty regex": Regex(""),
    "regex of spaces": Regex(" \n"),
    "choice": Choice(["a", "b"]),
    "choice of nothing to say": Choice([""]),
    "grammar": Grammar('root ::= "a"'),
    "tag": StructuralTag({"type": "structural_tag", "format": {"type": "any_text"}}),
    "tag without a type": StructuralTag({"format": {"type": "any_text"}}),
    "deepest tag": StructuralTag({"format": {"type": "any_text", "x": nested(78)}}),
    "older tag": tag(),
    "older tag with any value": tag(schema=True),
}

UNUSABLE: dict[str, Form] = {
    "too deep a schema": JsonSchema(nested(65)),
    "far too deep a schema": JsonSchema(nested(50_001)),
    "NUL in a regex": Regex("a\0"),
    "no choice": Choice([]),
    "empty grammar": Grammar(""),
    "grammar of spaces": Grammar(" \n\t"),
    "too deep a tag": StructuralTag({"format": {"type": "any_text", "x": nested(79)}}),
    "empty tag": StructuralTag({}),
    "tag of another type": StructuralTag({"type": "json", "format": {"type": "any_text"}}),
    "format is no object": StructuralTag({"format": ["any_text"]}),
    "format without a type": StructuralTag({"format": {}}),
    "type of a format is no text": StructuralTag({"format": {"type": 1}}),
    "no structures": StructuralTag({"structures": [], "triggers": ["<"]}),
    "structures are no list": StructuralTag({"structures": {}, "triggers": ["<"]}),
    "structure is no object": StructuralTag({"structures": ["<"], "triggers": ["<"]}),
    "no triggers": StructuralTag({"structures": [{"begin": "<", "schema": {}, "end": ">"}]}),
    "trigger is no text": StructuralTag({"structures": [{"begin": "<", "schema": {}, "end": ">"}], "triggers": [1]}),
    "no begin": tag(begin=None),
    "no end": tag(end=None),
    "no schema": tag(schema=None),
    "begins with no trigger": tag(begin="<h>"),
}


@pytest.mark.parametrize("name", USABLE)
def test_a_form_that_means_something(name: str) -> None:
    assert StructuredOutputs(form=USABLE[name]).form is USABLE[name]


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_form_that_means_nothing_is_refused_by_the_field_that_asked_for_it(name: str) -> None:
    with pytest.raises(FormNotUsable, match=r"^response_format: ") as refused:
        StructuredOutputs(form=UNUSABLE[name], param="response_format")
    assert refused.value.param == "response_format"
