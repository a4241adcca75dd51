"""Two answers to one case, value by value. A stream is compared by chunks where none of them were joined."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.real_engine.parity import KEYS, Difference, Path

Answer = Mapping[str, Any]
ABSENT = "(absent)"
"""What one side has where only the other has a key."""


def answer_differences(ours: Answer, theirs: Answer) -> Iterator[Difference]:
    if error_of(ours) or error_of(theirs):
        yield from differences(_verdict(ours), _verdict(theirs))
        return
    yield from differences(ours["status"], theirs["status"], ("status",))
    our_events, their_events = [_undated(body) for body in bodies(ours)], [_undated(body) for body in bodies(theirs)]
    if len(our_events) != len(their_events):
        our_events, their_events = _joined(our_events), _joined(their_events)
    yield from differences(our_events, their_events)


def bodies(answer: Answer) -> Sequence[Any]:
    """Of a stream, all that it has."""
    return answer["events"] if "events" in answer else [answer["body"]]


def error_of(answer: Answer) -> Mapping[str, Any] | None:
    """In one piece, or as a stream's only event."""
    told = bodies(answer)
    error = told[0].get("error") if len(told) == 1 and isinstance(told[0], dict) else None
    return error if isinstance(error, dict) else None


def differences(ours: Any, theirs: Any, path: Path = ()) -> Iterator[Difference]:
    """Every value, type, key and order of keys in which they differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and path[-1:] != ("stream_state",):
        orders = [name for name in ours if name in theirs], [name for name in theirs if name in ours]
        if orders[0] != orders[1]:
            yield Difference((*path, KEYS), *orders)
        for name in {**theirs, **ours}:
            yield from differences(ours.get(name, ABSENT), theirs.get(name, ABSENT), (*path, name))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, (*path, place))
    elif type(ours) is not type(theirs) or ours != theirs:
        yield Difference(path, ours, theirs)


def _verdict(answer: Answer) -> Any:
    """What a refusal says to a program."""
    error = error_of(answer)
    told = None if error is None else {name: error[name] for name in ("type", "param", "code")}
    return {"status": answer["status"], "error": told}


def _undated(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: 0 if name == "created" else _undated(value) for name, value in told.items()}
    return [_undated(each) for each in told] if isinstance(told, list) else told


def _joined(chunks: Sequence[Any]) -> list[Any]:
    """A server that is held up joins the chunks of a choice. What belongs to none stays as it is."""
    joined: dict[Any, Any] = {}
    for place, chunk in enumerate(chunks):
        index = chunk["choices"][0]["index"] if chunk["choices"] else f"chunk {place - len(chunks)}"
        joined[index] = _behind(joined[index], chunk) if index in joined else chunk
    return list(joined.values())


def _behind(before: Any, chunk: Any) -> Any:
    [one], [other] = before["choices"], chunk["choices"]
    rows = (one["logprobs"]["content"] + other["logprobs"]["content"]) if one["logprobs"] else None
    both = other | {
        "token_ids": one["token_ids"] + other["token_ids"],
        "logprobs": None if rows is None else {"content": rows},
    }
    if "text" in one:
        both["text"] = one["text"] + other["text"]
    return before | {"choices": [both], "usage": chunk["usage"]}
