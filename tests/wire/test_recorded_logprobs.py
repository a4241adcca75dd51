"""A real model's logprobs, from the engine's messages to the client's bytes (recorded by record_logprobs.py)."""

import json
from typing import Any

import pytest

from tests.http.answers import joined, whole
from tests.http.serving import CHAT, COMPLETIONS
from tests.wire.logprob_cases import CASES
from tests.wire.playback import array, in_process, messages, outputs, over_sockets, read_file

RECORDED = read_file()
SAMPLED, PROMPT = 2, 3
"""Where an engine's output has the scores of sampled tokens, and of the prompt's."""

STREAMED = [name for name, case in CASES.items() if case.streams]


def answer(name: str) -> Any:
    """The one choice of it."""
    [choice] = json.loads(RECORDED[name]["answer"])["choices"]
    return choice


def sent_rows(name: str, kind: int) -> list[dict[int, float]]:
    """What the engine sent, by position: the first logprob of each id, in order."""
    rows = []
    for frames in messages(RECORDED[name]):
        for output in outputs(frames):
            if output[kind] is not None:
                ids, logprobs = (array(tensor, frames).tolist() for tensor in output[kind][:2])
                rows += [first_ones(*row) for row in zip(ids, logprobs, strict=True)]
    return rows


def first_ones(ids: list[int], logprobs: list[float]) -> dict[int, float]:
    row: dict[int, float] = {}
    for token_id, logprob in zip(ids, logprobs, strict=True):
        row.setdefault(token_id, logprob)
    return row


@pytest.mark.parametrize("play", [over_sockets, in_process])
@pytest.mark.parametrize("name", CASES)
async def test_whole_answers_are_as_recorded(name: str, play: Any) -> None:
    assert (await play(name, RECORDED[name], stream=False)).decode() == RECORDED[name]["answer"]


@pytest.mark.parametrize("play", [over_sockets, in_process])
@pytest.mark.parametrize("name", STREAMED)
async def test_streamed_answers_are_as_recorded(name: str, play: Any) -> None:
    assert (await play(name, RECORDED[name], stream=True)).decode() == RECORDED[name]["streamed"]


@pytest.mark.parametrize("name", STREAMED)
def test_streams_join_to_the_whole(name: str) -> None:
    *frames, done, end = RECORDED[name]["streamed"].split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    [stream] = joined([json.loads(frame.removeprefix("data: ")) for frame in frames])
    [other] = whole(json.loads(RECORDED[name]["answer"]))
    assert stream == other._replace(usage=None)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.path == CHAT])
def test_every_number_of_the_engine_is_in_a_chat_answer(name: str) -> None:
    entries = answer(name)["logprobs"]["content"]
    rows = sent_rows(name, SAMPLED)
    limit = None if "logprob_token_ids" in CASES[name].fields else CASES[name].fields["top_logprobs"]

    assert [entry["logprob"] for entry in entries] == [next(iter(row.values())) for row in rows]
    shown = [[other["logprob"] for other in entry["top_logprobs"]] for entry in entries]
    assert shown == [list(row.values())[:limit] for row in rows]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.path == COMPLETIONS])
def test_every_number_of_the_engine_is_in_a_completion(name: str) -> None:
    logprobs = answer(name)["logprobs"]
    rows = [{}, *sent_rows(name, PROMPT)] if CASES[name].fields.get("echo") else []
    rows += sent_rows(name, SAMPLED)

    assert logprobs["token_logprobs"] == [next(iter(row.values()), None) for row in rows]
    assert [list((top or {}).values()) for top in logprobs["top_logprobs"]] == [list(row.values()) for row in rows]


def test_every_number_of_the_engine_is_in_prompt_logprobs() -> None:
    first, *shown = answer("scored hello")["prompt_logprobs"]

    assert first is None
    rows = sent_rows("scored hello", PROMPT)
    assert [list(place.items()) for place in rows] == [
        [(int(token_id), score["logprob"]) for token_id, score in place.items()] for place in shown
    ]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.path == CHAT])
def test_the_text_is_the_joined_bytes(name: str) -> None:
    choice = answer(name)
    shown = [entry for entry in choice["logprobs"]["content"] if entry["token"] != "<|im_end|>"]
    assert b"".join(bytes(entry["bytes"]) for entry in shown).decode() == choice["message"]["content"]
