"""`response_format` and `structured_outputs`: what of them reaches the engine, and what is refused before it does."""

import json
from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
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
from tests.http.answers import answer, error_of
from tests.http.serving import application, by_endpoint, post, question

FORMAT = {"type": "any_text"}
STRUCTURES = {"structures": [{"begin": "<a>", "schema": {}, "end": "</a>"}], "triggers": ["<a"]}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def named(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema} | more}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"a": schema}
    return schema


@pytest.fixture(scope="module")
def engine() -> ScriptedEngine:
    return ScriptedEngine(steps(104, 105))


@pytest.fixture(scope="module")
def app(engine: ScriptedEngine) -> Litestar:
    return application(engine)


async def form_of(app: Litestar, engine: ScriptedEngine, path: str, **fields: Any) -> StructuredOutputs | None:
    """What the engine was asked for."""
    assert answer(await post(app, path, question(path, **fields))).text == "hi"
    return engine.submitted[-1].sampling.structured_outputs


@by_endpoint
@pytest.mark.parametrize(
    ("asked", "form"),
    [
        ({"json": SCHEMA}, JsonSchema(SCHEMA)),
        ({"json": json.dumps(SCHEMA)}, JsonSchema(SCHEMA)),
        ({"json": {}}, JsonSchema({})),
        ({"json": deep(64)}, JsonSchema(deep(64))),
        ({"json": {"maximum": 10**30}}, JsonSchema({"maximum": 10**30})),
        ({"json_object": True}, JsonObject()),
        ({"regex": "a+"}, Regex("a+")),
        ({"regex": ""}, Regex("")),
        ({"choice": ["a", ""]}, Choice(["a", ""])),
        ({"grammar": 'root ::= "a"'}, Grammar('root ::= "a"')),
        ({"structural_tag": json.dumps({"format": FORMAT})}, StructuralTag({"format": FORMAT})),
        ({"structural_tag": json.dumps(STRUCTURES)}, StructuralTag(STRUCTURES)),
        ({"choice": ["a"], "regex": None, "json": None, "nobody_knows": 1}, Choice(["a"])),
    ],
)
async def test_structured_outputs(
    app: Litestar, engine: ScriptedEngine, path: str, asked: dict[str, Any], form: Form
) -> None:
    assert await form_of(app, engine, path, structured_outputs=asked) == StructuredOutputs(form=form)


@by_endpoint
@pytest.mark.parametrize(
    ("asked", "form"),
    [
        ({"type": "json_object"}, JsonObject()),
        (named(SCHEMA), JsonSchema(SCHEMA)),
        (named(SCHEMA, strict=True, description="d"), JsonSchema(SCHEMA)),
        ({"type": "structural_tag", "format": FORMAT}, StructuralTag({"type": "structural_tag", "format": FORMAT})),
        ({"type": "structural_tag", **STRUCTURES}, StructuralTag({"type": "structural_tag", **STRUCTURES})),
    ],
)
async def test_response_format(
    app: Litestar, engine: ScriptedEngine, path: str, asked: dict[str, Any], form: Form
) -> None:
    expected = StructuredOutputs(form=form, param="response_format")
    assert await form_of(app, engine, path, response_format=asked) == expected


@by_endpoint
async def test_nothing_asked_for(app: Litestar, engine: ScriptedEngine, path: str) -> None:
    assert await form_of(app, engine, path) is None
    assert await form_of(app, engine, path, response_format={"type": "text"}) is None
    assert await form_of(app, engine, path, response_format=None, structured_outputs=None) is None


@by_endpoint
async def test_options_beside_the_form(app: Litestar, engine: ScriptedEngine, path: str) -> None:
    options = {"disable_any_whitespace": True, "disable_additional_properties": True, "whitespace_pattern": " "}
    expected = StructuredOutputs(form=JsonObject(), **options)  # type: ignore[arg-type]
    assert await form_of(app, engine, path, structured_outputs={"json_object": True} | options) == expected


@by_endpoint
async def test_of_one_kind_response_format_counts(app: Litestar, engine: ScriptedEngine, path: str) -> None:
    both = await form_of(
        app, engine, path, structured_outputs={"json": {"a": 1}, "whitespace_pattern": " "}, response_format=named({})
    )
    assert both == StructuredOutputs(form=JsonSchema({}), whitespace_pattern=" ", param="response_format")
    text = await form_of(app, engine, path, structured_outputs={"regex": "a"}, response_format={"type": "text"})
    assert text == StructuredOutputs(form=Regex("a"))


@by_endpoint
@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("structured_outputs", {"structured_outputs": asked})
        for asked in (
            {},
            {"whitespace_pattern": " "},
            {"json": {}, "regex": "a"},
            {"choice": ["a"], "grammar": 'root ::= "a"'},
            {"json_object": False, "regex": "a"},
            {"json_object": False},
            {"json": ""},
            {"json": "{"},
            {"json": "[]"},
            {"json": "true"},
            {"json": "[" * 100_000},
            {"json": []},
            {"json": deep(65)},
            {"json": json.dumps(deep(65))},
            {"regex": "a\0"},
            {"regex": 1},
            {"choice": []},
            {"choice": "a"},
            {"choice": [1]},
            {"grammar": ""},
            {"grammar": " \n"},
            {"structural_tag": ""},
            {"structural_tag": "{"},
            {"structural_tag": "[]"},
            {"structural_tag": "{}"},
            {"structural_tag": {"format": FORMAT}},
            [],
            "json",
        )
    ]
    + [
        ("response_format", {"response_format": asked})
        for asked in (
            {},
            {"type": None},
            {"type": "xml"},
            {"type": "json_schema"},
            {"type": "json_schema", "json_schema": None},
            {"type": "json_schema", "json_schema": {"schema": {}}},
            {"type": "json_schema", "json_schema": {"name": "x"}},
            named(None),
            named(True),
            named("{}"),
            named(deep(65)),
            {"type": "structural_tag"},
            {"type": "structural_tag", "format": None},
            {"type": "structural_tag", "format": {}},
            {"type": "structural_tag", "structures": [], "triggers": []},
            {"type": "structural_tag", "structures": STRUCTURES["structures"]},
            [],
            "json_object",
        )
    ]
    + [
        ("response_format", {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}}),
        ("response_format", {"response_format": named({}), "structured_outputs": {"json_object": True}}),
        ("structured_outputs", {"response_format": {"type": "json_object"}, "structured_outputs": {}}),
        ("structured_outputs", {"response_format": {"type": "text"}, "structured_outputs": {"choice": []}}),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_refused_before_the_engine_sees_it(
    app: Litestar, engine: ScriptedEngine, path: str, param: str, fields: dict[str, Any], stream: bool
) -> None:
    submitted = len(engine.submitted)
    error = error_of(await post(app, path, question(path, stream=stream, **fields)), 400)
    assert error["param"] == param
    assert len(error["message"]) < 200
    assert len(engine.submitted) == submitted


@by_endpoint
async def test_an_engine_that_cannot_says_so(path: str) -> None:
    """Rather than answer in any other form."""
    mock = MockEngine(DeterministicModel(261, byte_vocabulary=True).start)
    for stream in (False, True):
        asked = question(path, stream=stream, response_format={"type": "json_object"})
        error = error_of(await post(application(mock), path, asked), 400)
        assert error["param"] == "response_format"
        assert error["message"] == "response_format is not supported by the mock engine."
    assert mock.running == 0
