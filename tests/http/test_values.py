"""No number that an engine gives makes an answer fail, or null (contract 7.1 and 7.2)."""

import math

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine
from domain.generation import TokenDelta
from domain.logprobs import LogprobColumns
from tests.http.answers import answer
from tests.http.serving import CHAT, COMPLETIONS, application, post, question, with_logprobs

TENTH = -0.10000000149011612
"""-0.1 in single precision, as a double."""

SHOWN = [
    (math.nan, -9999.0),
    (math.inf, -9999.0),
    (-math.inf, -9999.0),
    (-1e30, -9999.0),
    (-9999.5, -9999.0),
    (-9999.0, -9999.0),
    (-9998.5, -9998.5),
    (TENTH, TENTH),
    (0.0, 0.0),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("given", "shown"), SHOWN)
async def test_chat(given: float, shown: float, stream: bool) -> None:
    scores = LogprobColumns(2, [104, 105], [given, given], [1])
    app = application(ScriptedEngine([TokenDelta([104], scores)]))

    logprobs = answer(await post(app, CHAT, question(CHAT, stream=stream, **with_logprobs(CHAT, 2)))).logprobs

    assert logprobs is not None
    [entry] = logprobs["content"]
    assert [entry["logprob"], *[other["logprob"] for other in entry["top_logprobs"]]] == [shown] * 3


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("given", "shown"), SHOWN)
async def test_chat_without_alternatives(given: float, shown: float, stream: bool) -> None:
    app = application(ScriptedEngine([TokenDelta([104], LogprobColumns(1, [104], [given], [1]))]))

    logprobs = answer(await post(app, CHAT, question(CHAT, stream=stream, **with_logprobs(CHAT, 0)))).logprobs

    assert logprobs is not None
    [entry] = logprobs["content"]
    assert (entry["logprob"], entry["top_logprobs"]) == (shown, [])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("given", "shown"), SHOWN)
async def test_completions(given: float, shown: float, stream: bool) -> None:
    scores = LogprobColumns(2, [104, 105], [given, given], [1])
    prompt = LogprobColumns(2, [98, 99], [given, given], [1])
    app = application(ScriptedEngine([TokenDelta([104], scores, prompt)]))

    body = question(COMPLETIONS, "ab", stream=stream, echo=True, **with_logprobs(COMPLETIONS, 1))
    logprobs = answer(await post(app, COMPLETIONS, body)).logprobs

    assert logprobs is not None
    assert logprobs["token_logprobs"] == [None, shown, shown]
    assert logprobs["top_logprobs"] == [None, {"b": shown, "c": shown}, {"h": shown, "i": shown}]
