"""How many alternatives may be asked for (contract 8.1): one cap for both endpoints, named in the refusal."""

from typing import Any

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.http.answers import answer, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question, with_logprobs

PARAMS = {CHAT: "top_logprobs", COMPLETIONS: "logprobs"}
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def refused(path: str, cap: int, stream: bool, **fields: Any) -> str:
    engine = ScriptedEngine(steps(104, alternatives=range(30)))
    response = await post(application(engine, max_logprobs=cap), path, question(path, stream=stream, **fields))
    error = error_of(response, 400)
    assert error["param"] == PARAMS[path]
    assert not engine.submitted
    message: str = error["message"]
    return message


@by_endpoint
@STREAMED
@pytest.mark.parametrize("cap", [0, 5, 20])
async def test_above_the_cap(path: str, stream: bool, cap: int) -> None:
    assert str(cap) in await refused(path, cap, stream, **with_logprobs(path, cap + 1))
    assert str(cap) in await refused(path, cap, stream, **with_logprobs(path, -2))
    assert str(cap) in await refused(path, cap, stream, **with_logprobs(path, -1))


@by_endpoint
@STREAMED
@pytest.mark.parametrize("cap", [0, 5, 20])
async def test_at_the_cap(path: str, stream: bool, cap: int) -> None:
    app = application(ScriptedEngine(steps(104, alternatives=range(30))), max_logprobs=cap)
    shown = answer(await post(app, path, question(path, stream=stream, **with_logprobs(path, cap))))
    [row] = shown.alternatives
    assert len(row) == (cap + 1 if path == COMPLETIONS else cap)


@by_endpoint
@STREAMED
async def test_the_whole_vocabulary(path: str, stream: bool) -> None:
    """-1 is allowed where the cap is -1, and then so is any number up to the vocabulary's size, 261."""
    engine = ScriptedEngine(steps(104, alternatives=range(30)))
    app = application(engine, max_logprobs=-1)
    for alternatives in (-1, 261):
        shown = answer(await post(app, path, question(path, stream=stream, **with_logprobs(path, alternatives))))
        [row] = shown.alternatives
        assert len(row) == 31
    assert engine.submitted[0].sampling.logprobs == -1
    assert "261" in await refused(path, -1, stream, **with_logprobs(path, 262))
    await refused(path, -1, stream, **with_logprobs(path, -2))


@STREAMED
@pytest.mark.parametrize("logprobs", [{}, {"logprobs": None}, {"logprobs": False}], ids=["absent", "null", "false"])
@pytest.mark.parametrize("alternatives", [1, 20, 21, -1, -2])
async def test_top_logprobs_without_logprobs(stream: bool, logprobs: dict[str, Any], alternatives: int) -> None:
    assert "logprobs" in await refused(CHAT, 20, stream, top_logprobs=alternatives, **logprobs)


async def test_echo_asks_for_as_many_beside_the_prompt() -> None:
    engine = ScriptedEngine(steps(104))
    await post(application(engine), COMPLETIONS, question(COMPLETIONS, echo=True, logprobs=7))
    await post(application(engine), COMPLETIONS, question(COMPLETIONS, echo=False, logprobs=7))
    assert [request.sampling.prompt_logprobs for request in engine.submitted] == [7, None]


@by_endpoint
async def test_none_asked_for_none_computed(path: str) -> None:
    engine = ScriptedEngine(steps(104))
    app = application(engine)
    shown = answer(await post(app, path, question(path, echo=False, logprobs=None)))
    assert shown.logprobs is None
    assert engine.submitted[0].sampling.logprobs is None
