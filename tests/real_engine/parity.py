"""Two servers' answers to one question, compared value by value and shape by shape."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tests.real_engine.answers import Json

TOLERANCE = 1e-3
"""Of logprobs, absolute."""

KEYS = "(keys)"
"""In a path: the keys of the object there, in order."""

LEAVES = {("bytes",), ("token_ids",), ("prompt_token_ids",), ("text_offset",)}
"""Lists that are compared as a whole."""


Path = tuple[str | int, ...]


class Difference(NamedTuple):
    path: Path
    ours: Any
    theirs: Any

    def __str__(self) -> str:
        return f"{'.'.join(map(str, self.path))}: ours {self.ours!r}, theirs {self.theirs!r}"


def differences(ours: Any, theirs: Any, path: Path = ()) -> Iterator[Difference]:
    """Every value, key, key order and length in which two answers differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            yield Difference((*path, KEYS), list(ours), list(theirs))
        for key in theirs:
            if key in ours:
                yield from differences(ours[key], theirs[key], (*path, key))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs) and path[-1:] not in LEAVES:
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, (*path, index))
    elif isinstance(ours, float) and isinstance(theirs, float):
        if abs(ours - theirs) > TOLERANCE:
            yield Difference(path, ours, theirs)
    elif type(ours) is not type(theirs) or ours != theirs:
        yield Difference(path, ours, theirs)


def are_equal(ours: Any, theirs: Any) -> bool:
    return not any(differences(ours, theirs))


def at(body: Any, path: Path) -> Any:
    """What stands there in an answer."""
    for step in path:
        body = body[step]
    return body


def anonymous(body: Json) -> Json:
    """The answer without what is different each time: the id but for its prefix, and when it was made."""
    prefix, _, rest = body["id"].partition("-")
    assert rest, body["id"]
    assert isinstance(body["created"], int)
    return {**body, "id": prefix, "created": 0}


class StreamShape(NamedTuple):
    """What the chunks of one choice look like, their contents aside."""

    first: str
    middle: frozenset[str]
    final: str

    def is_like(self, other: "StreamShape") -> bool:
        """A server that is held up joins chunks, until there is none in the middle."""
        middles = {self.middle, other.middle} - {frozenset()}
        return (self.first, self.final) == (other.first, other.final) and len(middles) <= 1


def stream_shapes(chunks: Sequence[Json]) -> Mapping[int | None, StreamShape]:
    """By index of the choice; the chunk with the usage, which has none, is under None. One chunk of content is both the
    first and the final one."""
    shapes: dict[int | None, list[str]] = {}
    for chunk in chunks:
        index = chunk["choices"][0]["index"] if chunk["choices"] else None
        shapes.setdefault(index, []).append(_shape(chunk))
    return {
        index: StreamShape(shapes_of[0], frozenset(shapes_of[1:-1]), shapes_of[-1])
        for index, shapes_of in shapes.items()
    }


def _shape(value: Any, key: str = "") -> str:
    match value:
        case dict() if value and all(isinstance(each, float) for each in value.values()):
            return "{token: float}"
        case dict():
            return "{" + ", ".join(f"{name}: {_shape(each, name)}" for name, each in value.items()) + "}"
        case list() if key in ("bytes", "token_ids"):
            return "[int]"  # theirs have none for part of a character, ours none where only the prompt is asked for
        case list():
            # rows look alike, but for the first of an echoed prompt
            return "[" + ", ".join(sorted({_shape(each) for each in value})) + "]"
        case None:
            return "null"
    return type(value).__name__
