"""Asking over HTTP, and reading what comes back."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import httpx

from tests.real_engine.questions import QUESTIONS, Question

Json = dict[str, Any]


class Asker:
    """A client of one server. It asks one question at a time. Whoever makes it closes it."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=120, trust_env=False)

    def get(self, path: str) -> Json:
        return self._client.get(path).raise_for_status().json()

    def ask(self, question: Question) -> Json:
        """The whole answer."""
        return self._post(question, {}).json()

    def ask_streamed(self, question: Question) -> list[Json]:
        """The chunks of the answer, the one with the usage last."""
        reply = self._post(question, {"stream": True, "stream_options": {"include_usage": True}})
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        *frames, done, end = reply.text.split("\n\n")
        assert (done, end) == ("data: [DONE]", "")
        assert all(frame.startswith("data: ") for frame in frames)
        return [json.loads(frame.removeprefix("data: ")) for frame in frames]

    def close(self) -> None:
        self._client.close()

    def _post(self, question: Question, fields: Json) -> httpx.Response:
        reply = self._client.post(question.path, json={**question.body, **fields})
        assert reply.status_code == 200, f"{question.name}: {reply.status_code} {reply.text}"
        return reply


Recording = Mapping[str, tuple[Json, list[Json]]]
"""For each question by name: the whole answer, and the chunks of the streamed one."""


def record(url: str) -> Recording:
    """The answers to all questions, one at a time, always in the same order."""
    asker = Asker(url)
    try:
        return {question.name: (asker.ask(question), asker.ask_streamed(question)) for question in QUESTIONS}
    finally:
        asker.close()


class Answer(NamedTuple):
    """What an answer says, however it came: whole or in chunks, chat or completion. Lists have one item a row."""

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
    return _answer([body], body["usage"])


def joined(chunks: Sequence[Json]) -> Answer:
    """The chunks read as one. The last is the one with the usage, which no other carries."""
    *contents, last = chunks
    assert last["choices"] == []
    assert all(not chunk.get("usage") for chunk in contents)
    return _answer(contents, last["usage"])


def _answer(parts: Sequence[Json], usage: Json) -> Answer:
    choices = [part["choices"][0] for part in parts]
    finishes = [choice for choice in choices if choice["finish_reason"] is not None]
    assert finishes == choices[-1:]
    rows = [row for choice in choices for row in _rows(choice["logprobs"])]
    tokens, logprobs, alternatives, their_bytes, offsets = zip(*rows, strict=True) if rows else ((),) * 5
    return Answer(
        text="".join(map(_text, choices)),
        finish_reason=choices[-1]["finish_reason"],
        stop_reason=choices[-1]["stop_reason"],
        token_ids=[token_id for choice in choices for token_id in choice.get("token_ids") or ()],
        tokens=tokens,
        logprobs=logprobs,
        alternatives=alternatives,
        bytes=their_bytes,
        text_offset=offsets,
        usage=(usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]),
    )


def _text(choice: Json) -> str:
    if "text" in choice:
        return choice["text"]
    return (choice["message"] if "message" in choice else choice["delta"]).get("content") or ""


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
