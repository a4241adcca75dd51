"""What a frontend answers to a case, and what it asks its engine for meanwhile."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
from msgspec import Struct

from adapters.outbound.vllm_engine.wire import EngineCoreRequest

REFERENCE = Path(__file__).with_name("reference.jsonl.gz")
EVENT_STREAM = "text/event-stream; charset=utf-8"
HEADERS = ("content-type", "x-request-id")
"""Those of an answer that are compared."""

Json = dict[str, Any]


class Answer(Struct, kw_only=True, omit_defaults=True):
    """Either a body or chunks."""

    status: int
    headers: Mapping[str, str]
    body: Any = None
    chunks: Sequence[Json] | None = None
    """What each frame holds, in order."""
    done: bool = True
    """Whether the stream ended as it should."""
    asked: Sequence[Json] = ()
    """The requests that reached the engine, in order."""

    @property
    def error(self) -> Json | None:
        """In one piece, or as a stream's only frame."""
        told = self.chunks[0] if self.chunks and len(self.chunks) == 1 else self.body
        error = told.get("error") if isinstance(told, dict) else None
        return error if isinstance(error, dict) else None


class Recorded(Struct, kw_only=True):
    """A case by its name, as it was asked, and the answer."""

    name: str
    request: Json
    answer: Answer


def read_answer(reply: httpx.Response, asked: Iterable[Sequence[Any]]) -> Answer:
    headers = {name: reply.headers[name] for name in HEADERS if name in reply.headers}
    requests = [_named(each) for each in asked]
    if headers.get("content-type") != EVENT_STREAM:
        body = reply.json() if headers.get("content-type") == "application/json" else reply.text
        return Answer(status=reply.status_code, headers=headers, body=body, asked=requests)
    *frames, done, end = reply.text.split("\n\n")
    return Answer(
        status=reply.status_code,
        headers=headers,
        chunks=[json.loads(frame.removeprefix("data: ")) for frame in frames],
        done=(done, end) == ("data: [DONE]", ""),
        asked=requests,
    )


DIFFERENT_EACH_TIME = {"request_id", "arrival_time", "client_index", "current_wave", "external_req_id"}
UNSAID = (None, 0, False)


def _named(message: Sequence[Any]) -> Json:
    """The body of an ADD, less what goes without saying."""
    fields = [field.name for field in msgspec.structs.fields(EngineCoreRequest)]
    named = msgspec.to_builtins(dict(zip(fields, message, strict=False)), str_keys=True)
    return {name: value for name, value in named.items() if not (name in DIFFERENT_EACH_TIME or value in UNSAID)}


def read_reference() -> tuple[Mapping[str, Any], Mapping[str, Recorded]]:
    """What the recording says of itself, and the answers by name."""
    with gzip.open(REFERENCE, "rt") as file:
        head, *rest = map(json.loads, file)
    return head, {each["name"]: msgspec.convert(each, Recorded) for each in rest}


def write_reference(head: Mapping[str, Any], answers: Sequence[Recorded]) -> None:
    """The same bytes for the same answers."""
    lines = [json.dumps(msgspec.to_builtins(each), ensure_ascii=False) + "\n" for each in (head, *answers)]
    with REFERENCE.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.writelines(line.encode() for line in lines)
