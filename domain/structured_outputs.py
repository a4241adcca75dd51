"""What form an output is held to, and which forms mean something. Whether one can be held to is the engine's to say."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from domain.errors import RequestError

DEEPEST_SCHEMA = 64
"""Objects and arrays inside each other, the outermost included. Same as vLLM."""

DEEPEST_TAG = DEEPEST_SCHEMA + 16
"""The same of a structural tag, which has schemas inside. Same as vLLM."""


class FormNotUsable(RequestError):
    """An output is to be held to a form that means nothing."""


class JsonSchema(Struct, frozen=True):
    """JSON that a schema allows."""

    schema: Mapping[str, Any]


class JsonObject(Struct, frozen=True):
    """Any JSON object."""


class Regex(Struct, frozen=True):
    """Text that matches as a whole. An empty pattern means something: an empty text."""

    pattern: str


class Choice(Struct, frozen=True):
    """One of a few texts."""

    options: Sequence[str]


class Grammar(Struct, frozen=True):
    """Text that a grammar derives, EBNF or Lark."""

    rules: str


class StructuralTag(Struct, frozen=True):
    """Free text with parts of a form in it, as xgrammar describes it: a `format`, or `structures` and `triggers`."""

    tag: Mapping[str, Any]


Form = JsonSchema | JsonObject | Regex | Choice | Grammar | StructuralTag


class StructuredOutputs(Struct, frozen=True, kw_only=True):
    """The form of an output. Raises FormNotUsable at construction for one that no engine could make sense of."""

    form: Form
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    param: str = "structured_outputs"
    """The request field that asked for it."""

    def __post_init__(self) -> None:
        problem = _problem(self.form)
        if problem is not None:
            raise FormNotUsable(f"{self.param}: {problem}", self.param)


def _problem(form: Form) -> str | None:
    """What is wrong with a form, for its caller."""
    match form:
        case JsonSchema(schema) if _is_deeper(schema, DEEPEST_SCHEMA):
            return f"a JSON schema nests objects and arrays at most {DEEPEST_SCHEMA} deep."
        case Regex(pattern) if "\0" in pattern:
            return "a regex must not contain NUL."
        case Choice([]):
            return "choice must not be empty."
        case Grammar(rules) if not rules.strip():
            return "a grammar must not be empty."
        case StructuralTag(tag) if _is_deeper(tag, DEEPEST_TAG):
            return f"a structural tag nests objects and arrays at most {DEEPEST_TAG} deep."
        case StructuralTag(tag):
            return _problem_of_tag(tag)
    return None


def _problem_of_tag(tag: Mapping[str, Any]) -> str | None:
    if "structures" not in tag:
        described = tag.get("format")
        if tag.get("type", "structural_tag") != "structural_tag":
            return "a structural tag is of type structural_tag."
        if not isinstance(described, Mapping) or not isinstance(described.get("type"), str):
            return "a structural tag needs a format with a type, or structures and triggers."
        return None
    structures: Any = tag["structures"]
    triggers: Any = tag.get("triggers")
    if not _are(structures, Mapping) or not _are(triggers, str):
        return "structures and triggers of a structural tag must both be given and must not be empty."
    for structure in structures:
        begin = structure.get("begin")
        if not isinstance(begin, str) or not isinstance(structure.get("end"), str):
            return "each of the structures needs begin and end."
        if not isinstance(structure.get("schema"), Mapping | bool):
            return "each of the structures needs a schema."
        if not begin.startswith(tuple(triggers)):
            return "each of the structures must begin with one of the triggers."
    return None


def _are(items: object, kind: type[Any]) -> bool:
    """Whether it is a list of one or more of a kind."""
    return isinstance(items, list) and bool(items) and all(isinstance(item, kind) for item in items)


def _is_deeper(value: object, limit: int) -> bool:
    """Level by level: what is nested too deeply must not exhaust the stack."""
    level = [value]
    for _ in range(limit):
        level = [child for node in level for child in _children(node) if isinstance(child, Mapping | list)]
        if not level:
            return False
    return True


def _children(node: object) -> Iterable[object]:
    if isinstance(node, Mapping):
        return node.values()
    return node if isinstance(node, list) else ()
