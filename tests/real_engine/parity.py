"""Two servers' answers to one question, compared value by value and shape by shape."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.real_engine.answers import Json

TOLERANCE = 1e-3
"""Of logprobs, absolute."""

KEYS = "(keys)"
"""In a path: the keys of the object there, in order."""

LEAVES = {"bytes", "token_ids", "prompt_token_ids", "text_offset"}
"""Lists that are compared as a whole."""


class Difference(NamedTuple):
    path: tuple[str | int, ...]
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: ours {self.ours!r}, theirs {self.theirs!r}"


def differences(ours: Any, theirs: Any, path: tuple[str | int, ...] = ()) -> Iterator[Difference]:
    """Every value, key, key order and length in which two answers differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            yield Difference((*path, KEYS), list(ours), list(theirs))
        for key in theirs:
            if key in ours:
                yield from differences(ours[key], theirs[key], (*path, key))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs) and path[-1] not in LEAVES:
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, (*path, index))
    elif isinstance(ours, float) and isinstance(theirs, float):
        if abs(ours - theirs) > TOLERANCE:
            yield Difference(path, ours, theirs)
    elif type(ours) is not type(theirs) or ours != theirs:
        yield Difference(path, ours, theirs)


def anonymous(body: Json) -> Json:
    """The answer without what is different each time: the id but for its prefix, and when it was made."""
    prefix, _, rest = body["id"].partition("-")
    assert rest, body["id"]
    assert isinstance(body["created"], int)
    return {**body, "id": prefix, "created": 0}


class StreamShape(NamedTuple):
    """What the chunks of a stream look like, their contents aside."""

    first: str
    middle: frozenset[str]
    final: str
    usage: str


def stream_shape(chunks: Sequence[Json]) -> StreamShape:
    """`chunks` end with the one that has the usage. One chunk of content is both the first and the final one."""
    *contents, usage = map(_shape, chunks)
    return StreamShape(contents[0], frozenset(contents[1:-1]), contents[-1], usage)


def _shape(value: Any, key: str = "") -> str:
    match value:
        case dict() if value and all(isinstance(each, float) for each in value.values()):
            return "{token: float}"
        case dict():
            return "{" + ", ".join(f"{name}: {_shape(each, name)}" for name, each in value.items()) + "}"
        case list() if key == "bytes":
            return "[int]"  # theirs are none for part of a character
        case list():
            # rows look alike, but for the first of an echoed prompt
            return "[" + ", ".join(sorted({_shape(each) for each in value})) + "]"
        case None:
            return "null"
    return type(value).__name__
