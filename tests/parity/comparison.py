"""Two frontends' answers to one case, value by value and chunk by chunk."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tests.parity.answers import Answer, Json
from tests.parity.asked import as_engines_read
from tests.real_engine.parity import Difference, differences

HASH = re.compile(r"-[0-9a-f]{8}$")
RANDOM_ID = re.compile(r"(chatcmpl-|cmpl-)[0-9a-f]{16}")
RANDOM_HEADER = re.compile(r"^[0-9a-f]{32}$")

Streams = Mapping[int | None, Sequence[Json]]
"""Chunks by the index of their choice; None is the one with the usage."""


def answer_differences(ours: Answer, theirs: Answer) -> Iterator[Difference]:
    if ours.error or theirs.error:
        yield from differences(_verdict(ours), _verdict(theirs))
        return
    yield from differences(ours.status, theirs.status, ("status",))
    yield from differences(_headers(ours), _headers(theirs), ("headers",))
    yield from differences(list(map(as_engines_read, ours.asked)), list(map(as_engines_read, theirs.asked)), ("asked",))
    yield from differences(ours.done, theirs.done, ("done",))
    if ours.chunks is None or theirs.chunks is None:
        yield from differences(anonymous(ours.body), anonymous(theirs.body))
    else:
        yield from _stream_differences(anonymous(ours.chunks), anonymous(theirs.chunks))


def _verdict(answer: Answer) -> Json:
    """What a failure says to a program."""
    error = answer.error and {name: answer.error[name] for name in ("type", "param", "code")}
    return {"status": answer.status, "error": error, "headers": _headers(answer)}


def _headers(answer: Answer) -> Json:
    return {name: RANDOM_HEADER.sub("random", value) for name, value in answer.headers.items()}


def anonymous(told: Any) -> Any:
    """Without what is different each time, random ids and when it was made, nor what the engine is like."""
    if isinstance(told, list):
        return [anonymous(each) for each in told]
    if not isinstance(told, dict):
        return told
    named = {name: anonymous(value) for name, value in told.items()}
    if isinstance(named.get("id"), str):
        named["id"] = RANDOM_ID.sub(r"\1random", named["id"])
    if isinstance(named.get("created"), int):
        named["created"] = 0
    if isinstance(named.get("system_fingerprint"), str):
        named["system_fingerprint"] = HASH.sub("-hash", named["system_fingerprint"])
    return named


def _stream_differences(ours: Sequence[Json], theirs: Sequence[Json]) -> Iterator[Difference]:
    yield from differences(heads(ours), heads(theirs), ("heads",))
    our_streams, their_streams = by_choice(ours), by_choice(theirs)
    yield from differences(sorted(our_streams, key=str), sorted(their_streams, key=str), ("choices",))
    for index in our_streams.keys() & their_streams.keys():
        yield from _choice_differences(index, our_streams[index], their_streams[index])
    yield from differences(assembled(ours), assembled(theirs))


def _choice_differences(index: int | None, ours: Sequence[Json], theirs: Sequence[Json]) -> Iterator[Difference]:
    path, shown = ("chunks", str(index)), theirs
    if len(ours) < len(theirs):
        shown = [chunk for chunk in theirs if not is_empty(chunk)]
    if len(ours) != len(shown):
        yield Difference((*path, "count"), len(ours), len(theirs))
        return
    if len(shown) < len(theirs):
        yield Difference((*path, "empty"), 0, len(theirs) - len(shown))
    for place, (our_chunk, their_chunk) in enumerate(zip(ours, shown, strict=True)):
        yield from differences(frame_of(our_chunk), frame_of(their_chunk), (*path, place))
    our_texts, their_texts = [text_of(chunk) for chunk in ours], [text_of(chunk) for chunk in shown]
    if our_texts != their_texts:
        yield Difference((*path, "texts"), our_texts, their_texts)


def heads(chunks: Sequence[Json]) -> Sequence[int]:
    """Whose role is told, before anything else is."""
    return [choice["index"] for chunk in chunks for choice in chunk["choices"] if "role" in choice.get("delta", {})]


def by_choice(chunks: Sequence[Json]) -> Streams:
    streams: dict[int | None, list[Json]] = {}
    for chunk in chunks:
        index = chunk["choices"][0]["index"] if chunk["choices"] else None
        streams.setdefault(index, []).append(chunk)
    return streams


def is_empty(chunk: Json) -> bool:
    """Whether nothing of a choice is to be seen in it."""
    if not chunk["choices"]:
        return False
    (choice,) = chunk["choices"]
    said = [choice["logprobs"], choice["finish_reason"], choice.get("token_ids"), choice.get("prompt_token_ids")]
    return text_of(chunk) == "" and "role" not in choice.get("delta", {}) and not any(said)


def text_of(chunk: Json) -> str | None:
    """None where it has none, not even an empty one."""
    if not chunk["choices"]:
        return None
    (choice,) = chunk["choices"]
    text: str | None = choice["text"] if "text" in choice else choice["delta"].get("content")
    return text


def frame_of(chunk: Json) -> Json:
    """The chunk, less the text it has, and with a count for the rows."""
    if not chunk["choices"]:
        return chunk
    (choice,) = chunk["choices"]
    bare = {**choice, "logprobs": _rows(choice["logprobs"])}
    if "text" in bare:
        bare["text"] = ""
    else:
        bare["delta"] = {name: "" if name == "content" else value for name, value in bare["delta"].items()}
    return {**chunk, "choices": [bare]}


def _rows(logprobs: Json | None) -> Json | None:
    return None if logprobs is None else {name: [None] * len(rows) for name, rows in logprobs.items()}


def assembled(chunks: Sequence[Json]) -> Json:
    """Texts and rows of the choices, each in one piece."""
    streams = by_choice(chunks)
    return {"choices": [_assembled_choice(streams[index]) for index in sorted(i for i in streams if i is not None)]}


def _assembled_choice(chunks: Sequence[Json]) -> Json:
    text = "".join(text_of(chunk) or "" for chunk in chunks)
    rows = [chunk["choices"][0]["logprobs"] for chunk in chunks if chunk["choices"][0]["logprobs"] is not None]
    logprobs = {name: list(chain.from_iterable(each[name] for each in rows)) for name in rows[0]} if rows else None
    named = {"message": {"content": text}} if "delta" in chunks[0]["choices"][0] else {"text": text}
    return {**named, "logprobs": logprobs}
