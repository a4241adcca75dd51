"""Answers as a client puts them together, whichever endpoint gave them and whether or not they were streamed."""

import json
import re
from typing import Any, NamedTuple

import httpx

Json = dict[str, Any]


class Answer(NamedTuple):
    """What of an answer must not depend on whether it was streamed."""

    text: str
    token_ids: list[int] | None
    logprobs: Json | None
    finish_reason: str | None
    stop_reason: str | int | None
    prompt_token_ids: list[int] | None
    usage: Json | None

    @property
    def tokens(self) -> list[str]:
        """The token at each position, as it is shown."""
        assert self.logprobs is not None
        if "content" in self.logprobs:
            return [entry["token"] for entry in self.logprobs["content"]]
        tokens: list[str] = self.logprobs["tokens"]
        return tokens

    @property
    def alternatives(self) -> list[list[str]]:
        """At each position, the tokens that are listed with a logprob, in order."""
        assert self.logprobs is not None
        if "content" in self.logprobs:
            return [[other["token"] for other in entry["top_logprobs"]] for entry in self.logprobs["content"]]
        return [list(position or ()) for position in self.logprobs["top_logprobs"]]


def frames(response: httpx.Response) -> list[bytes]:
    """The events of a stream, each with its `data: ` and without the empty line."""
    return frames_in(response.content)


def frames_in(content: bytes) -> list[bytes]:
    assert content.endswith(b"\n\n")
    found = content[:-2].split(b"\n\n")
    assert all(frame.startswith(b"data: ") and b"\n" not in frame for frame in found)
    return found


def chunks(response: httpx.Response) -> list[Json]:
    """The chunks of a stream that ended as it should."""
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    *found, last = frames(response)
    assert last == b"data: [DONE]"
    return [json.loads(frame.removeprefix(b"data: ")) for frame in found]


def answer(response: httpx.Response) -> Answer:
    """The only choice."""
    [only] = answers(response)
    return only


def answers(response: httpx.Response) -> list[Answer]:
    """Every choice, in the order of their indexes. The usage of each is that of the whole answer."""
    assert response.status_code == 200, response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        return joined(chunks(response))
    assert response.headers["content-type"] == "application/json"
    return whole(response.json())


def whole(body: Json) -> list[Answer]:
    choices = body["choices"]
    assert [choice["index"] for choice in choices] == list(range(len(choices)))
    is_chat = "message" in choices[0]
    return [
        Answer(
            text=choice["message"]["content"] if is_chat else choice["text"],
            token_ids=choice["token_ids"],
            logprobs=choice["logprobs"],
            finish_reason=choice["finish_reason"],
            stop_reason=choice["stop_reason"],
            prompt_token_ids=body["prompt_token_ids"] if is_chat else choice["prompt_token_ids"],
            usage={name: count for name, count in body["usage"].items() if not name.endswith("_details")},
        )
        for choice in choices
    ]


def joined(stream: list[Json]) -> list[Answer]:
    """A stream's chunks put together. `usage` is that of the closing chunk."""
    closing = [chunk["usage"] for chunk in stream if not chunk["choices"]]
    assert len(closing) <= 1
    assert all(chunk["choices"] for chunk in stream[:-1])
    indexes = sorted({choice["index"] for chunk in stream for choice in chunk["choices"]})
    assert indexes == list(range(len(indexes)))
    return [_joined(stream, index, closing[0] if closing else None) for index in indexes]


def _joined(stream: list[Json], index: int, usage: Json | None) -> Answer:
    chunks_of = [chunk for chunk in stream if any(choice["index"] == index for choice in chunk["choices"])]
    choices = [choice for chunk in chunks_of for choice in chunk["choices"]]
    assert all(choice["index"] == index for choice in choices)
    assert all(choice["finish_reason"] is None for choice in choices[:-1])
    is_chat = "delta" in choices[0]
    ids = [choice["token_ids"] for choice in choices if choice.get("token_ids") is not None]
    rows = [choice["logprobs"] for choice in choices if choice["logprobs"] is not None]
    prompts = [item.get("prompt_token_ids") for item in (chunks_of if is_chat else choices)]
    assert all(prompt is None for prompt in prompts[1:])
    return Answer(
        text="".join(choice["delta"]["content"] if is_chat else choice["text"] for choice in choices),
        token_ids=[token_id for some in ids for token_id in some] if ids else None,
        logprobs={name: [item for some in rows for item in some[name]] for name in rows[0]} if rows else None,
        finish_reason=choices[-1]["finish_reason"],
        stop_reason=choices[-1]["stop_reason"],
        prompt_token_ids=prompts[0],
        usage=usage,
    )


def error_of(response: httpx.Response, status: int, kind: str = "BadRequestError") -> Json:
    """The error of an answer that has nothing but the envelope; its param and message are the test's to look at."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    error: Json = body["error"]
    assert list(error) == ["message", "type", "param", "code"]
    assert (error["type"], error["code"]) == (kind, status)
    assert isinstance(error["message"], str)
    assert error["message"]
    return error


def undated(content: bytes) -> bytes:
    """An answer whose only accident, the time it was made, is 1."""
    return re.sub(rb'"created":\d{10},', b'"created":1,', content)
