"""Asking over HTTP, and reading what comes back."""

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import httpx

from tests.real_engine.questions import Question
from tests.real_engine.servers import API_KEY

Json = dict[str, Any]


class Asker:
    """A client of one server. It asks one question at a time. Whoever makes it closes it."""

    def __init__(self, url: str, **fields: Any) -> None:
        """Every question has these fields, whatever it says itself."""
        self._fields = fields
        self._client = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {API_KEY}"}, timeout=120, trust_env=False
        )

    def get(self, path: str) -> Json:
        return self._client.get(path).raise_for_status().json()

    def post(self, path: str, body: Json) -> httpx.Response:
        return self._client.post(path, json=body)

    def ask(self, question: Question) -> Json:
        """The whole answer."""
        return self._post(question, {}).json()

    def ask_streamed(self, question: Question) -> list[Json]:
        """The chunks of the answer, the one with the usage last."""
        return _events(self._post(question, {"stream": True, "stream_options": {"include_usage": True}}))

    def tell(self, path: str, body: Json) -> Any:
        """What a route answers that no question is put to."""
        reply = self.post(path, body)
        assert reply.status_code == 200, f"{path}: {reply.status_code} {reply.text}"
        return reply.json()

    def events(self, path: str, body: Json) -> list[Json]:
        """What is streamed, up to [DONE]."""
        return _events(self.post(path, body))

    def close(self) -> None:
        self._client.close()

    def _post(self, question: Question, fields: Json) -> httpx.Response:
        reply = self.post(question.path, {**question.body, **self._fields, **fields})
        assert reply.status_code == 200, f"{question.name}: {reply.status_code} {reply.text}"
        return reply


def _events(reply: httpx.Response) -> list[Json]:
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    *frames, done, end = reply.text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    assert all(frame.startswith("data: ") for frame in frames)
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def assembled(chunks: Sequence[Json]) -> Json:
    """The chunks as one answer, as far as they say what it says. The last is the one with the usage, which no other
    carries; each choice's last chunk, and no other, tells how it finished."""
    *contents, last = chunks
    assert last["choices"] == []
    assert all(not chunk.get("usage") for chunk in contents)
    parts: dict[int, list[Json]] = {}
    for chunk in contents:
        (choice,) = chunk["choices"]
        parts.setdefault(choice["index"], []).append({**chunk, **choice})
    choices = [_assembled_choice(parts[index]) for index in sorted(parts)]
    body: Json = {"choices": choices, "usage": last["usage"]}
    if "message" in choices[0]:
        body["prompt_token_ids"] = contents[0]["prompt_token_ids"]
    return body


def _assembled_choice(parts: Sequence[Json]) -> Json:
    assert [part["finish_reason"] is not None for part in parts] == [False] * (len(parts) - 1) + [True]
    choice: Json = {"index": parts[0]["index"]}
    if "delta" in parts[0]:
        roles = [part["delta"]["role"] for part in parts if "role" in part["delta"]]
        assert roles == ["assistant"]
        choice["message"] = {"content": "".join(part["delta"].get("content") or "" for part in parts)}
    else:
        choice["text"] = "".join(part["text"] for part in parts)
        choice["prompt_token_ids"] = parts[0]["prompt_token_ids"]
        assert all(part["prompt_token_ids"] is None for part in parts[1:])
    choice["logprobs"] = _joined_logprobs([part["logprobs"] for part in parts if part["logprobs"] is not None])
    choice["finish_reason"], choice["stop_reason"] = parts[-1]["finish_reason"], parts[-1]["stop_reason"]
    token_ids = [part["token_ids"] for part in parts if part.get("token_ids") is not None]
    choice["token_ids"] = list(chain.from_iterable(token_ids)) if token_ids else None
    return choice


def _joined_logprobs(parts: Sequence[Json]) -> Json | None:
    return {key: list(chain.from_iterable(part[key] for part in parts)) for key in parts[0]} if parts else None


class Answer(NamedTuple):
    """What a choice says, however it came: whole or in chunks, chat or completion. Lists have one item a row."""

    text: str
    finish_reason: str | None
    stop_reason: str | int | None
    token_ids: Sequence[int]
    """Of the output; empty when they were not asked for."""
    tokens: Sequence[str]
    logprobs: Sequence[float | None]
    alternatives: Sequence[Sequence[tuple[str, float]]]
    """Token and logprob in the order in which they are shown; empty where there are none."""
    bytes: Sequence[Sequence[int]]
    """Chat only."""
    text_offset: Sequence[int]
    """Completions only."""
    usage: tuple[int, int, int]
    """Prompt, completion, total."""


def whole(body: Json) -> Answer:
    """The only choice."""
    (answer,) = each_choice(body)
    return answer


def joined(chunks: Sequence[Json]) -> Answer:
    """The only choice, of chunks."""
    return whole(assembled(chunks))


def each_choice(body: Json) -> list[Answer]:
    """In order, each beside the usage of all."""
    assert [choice["index"] for choice in body["choices"]] == list(range(len(body["choices"])))
    usage = body["usage"]
    return [
        _answer(choice, (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]))
        for choice in body["choices"]
    ]


def _answer(choice: Json, usage: tuple[int, int, int]) -> Answer:
    rows = list(_rows(choice["logprobs"]))
    tokens, logprobs, alternatives, their_bytes, offsets = zip(*rows, strict=True) if rows else ((),) * 5
    return Answer(
        text=choice["text"] if "text" in choice else choice["message"]["content"],
        finish_reason=choice["finish_reason"],
        stop_reason=choice["stop_reason"],
        token_ids=choice["token_ids"] or (),
        tokens=tokens,
        logprobs=logprobs,
        alternatives=alternatives,
        bytes=their_bytes,
        text_offset=offsets,
        usage=usage,
    )


Row = tuple[str, float | None, list[tuple[str, float]], list[int] | None, int | None]


def _rows(logprobs: Json | None) -> Iterable[Row]:
    if logprobs is None:
        return
    if "content" in logprobs:
        for row in logprobs["content"]:
            alternatives = [(each["token"], each["logprob"]) for each in row["top_logprobs"]]
            yield row["token"], row["logprob"], alternatives, row["bytes"], None
        return
    columns = logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], logprobs["text_offset"]
    for token, logprob, alternatives_of, offset in zip(*columns, strict=True):
        yield token, logprob, list((alternatives_of or {}).items()), None, offset
