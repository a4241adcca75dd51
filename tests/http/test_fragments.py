"""What is kept of tokens: the JSON that their rows are put together from."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from adapters.inbound.http.openai import filling
from adapters.inbound.http.openai.fragments import (
    LARGEST_ID,
    Kept,
    KeptById,
    TokenDisplay,
    chat_fragment,
    completion_fragment,
    lone_format,
)
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import ScoredTokens
from domain.logprobs import LogprobColumns
from tests.http.answers import answer
from tests.http.serving import CHAT, COMPLETIONS, application, post, question
from tests.http.vocabulary import HardTokenizer

HUNDRED, FORMAT = 300, 301
ENTRIES = {HUNDRED: b" 100%", FORMAT: b"%b%%d"}


@pytest.mark.parametrize("as_ids", [False, True])
async def test_percent_signs_are_text(as_ids: bool) -> None:
    engine = ScriptedEngine(steps(HUNDRED, FORMAT, alternatives=[FORMAT, HUNDRED]))
    app = application(engine, tokenizer=HardTokenizer(ENTRIES))
    shown = ["token_id:300", "token_id:301"] if as_ids else [" 100%", "%b%%d"]
    fields: dict[str, Any] = {"return_tokens_as_token_ids": as_ids}

    chat = answer(await post(app, CHAT, question(CHAT, logprobs=True, top_logprobs=2, **fields))).logprobs
    completion = answer(await post(app, COMPLETIONS, question(COMPLETIONS, logprobs=2, **fields))).logprobs

    assert chat is not None
    assert completion is not None
    assert [entry["token"] for entry in chat["content"]] == shown
    assert [[other["token"] for other in entry["top_logprobs"]] for entry in chat["content"]] == [shown, shown[::-1]]
    assert completion["tokens"] == shown
    assert [list(top) for top in completion["top_logprobs"]] == [shown, shown[::-1]]


def test_an_alternative_is_made_once_for_each_context() -> None:
    display = TokenDisplay(HardTokenizer().piece, show_token_ids=False, fill_rows=filling.fill_rows)
    party = "🎉".encode()

    def alternative(context: bytes) -> bytes:
        columns = LogprobColumns(1, [0x61], [-1.0], [1])
        part = ScoredTokens([0x61], ["a"], [0], [context], columns, hides_special=True)
        entries = display.entries(part)
        assert callable(entries.make)
        return (entries.kept[party[-1]] if entries.kept else None) or entries.make(party[-1])

    alone, whole = alternative(b""), alternative(party[:-1])

    assert json.loads(alone % b"-1.5")["token"] == "\ufffd"
    assert json.loads(whole % b"-1.5")["token"] == "🎉"
    assert alternative(b"") is alone
    assert alternative(party[:-1]) is whole


def test_what_is_kept_is_bounded() -> None:
    made: list[int] = []

    def make(number: int) -> str:
        made.append(number)
        return str(number)

    kept = Kept(make, most=10)

    assert [kept[number] for number in (*range(100), *range(95, 100))] == [
        str(n) for n in (*range(100), *range(95, 100))
    ]
    assert made == list(range(100))
    assert len(kept) <= 10


def test_what_is_kept_of_ids_is_bounded() -> None:
    made: list[int] = []

    def make(token_id: int) -> bytes:
        made.append(token_id)
        return b"%d" % token_id

    by_id = KeptById(make, most=10)

    def of(row: Iterable[int]) -> list[bytes]:
        return [by_id[token_id] for token_id in row]

    row = [*range(100), *range(95, 100), 5, -1, -2, LARGEST_ID, -1]

    assert of(row) == [b"%d" % token_id for token_id in row]
    assert made == [*range(100), 5, -1, -2, LARGEST_ID, -1]
    assert of([99, 5]) == [b"99", b"5"]
    assert len(by_id.kept) == 100
    assert len([made for made in by_id.kept if made is not None]) <= 10
    made.clear()
    assert [of([5, 99]), of([5, -1]), of([])] == [[b"5", b"99"], [b"5", b"-1"], []]
    assert made == [-1]


def test_a_number_goes_into_each_format() -> None:
    chat, completion = chat_fragment("50%", b"50%"), completion_fragment("50%", b"50%")

    assert chat.entry % b"-1.5" == b'{"token":"50%","logprob":-1.5,"bytes":[53,48,37]}'
    assert chat.opening % b"-1.5" == b'{"token":"50%","logprob":-1.5,"bytes":[53,48,37],"top_logprobs":['
    assert completion.token == b'"50%"'
    assert completion.score % b"-1.5" == b'"50%":-1.5'
    assert json.loads(lone_format("50%", b"50%") % b"-1.5") == {
        "content": [{"token": "50%", "logprob": -1.5, "bytes": [53, 48, 37], "top_logprobs": []}]
    }
