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


class TestPromptLogprobs:
    """The same cap, under a name of its own."""

    @staticmethod
    async def error(path: str, cap: int, **fields: Any) -> dict[str, Any]:
        engine = ScriptedEngine(steps(104))
        error = error_of(await post(application(engine, max_logprobs=cap), path, question(path, **fields)), 400)
        assert not engine.submitted
        return error

    @by_endpoint
    @pytest.mark.parametrize("cap", [0, 5, 20])
    async def test_above_the_cap(self, path: str, cap: int) -> None:
        for asked in (cap + 1, -1, -2):
            error = await self.error(path, cap, prompt_logprobs=asked)
            assert error["param"] == "prompt_logprobs"
            assert "prompt_logprobs" in error["message"]
            assert str(cap) in error["message"].replace(str(asked), "")

    @by_endpoint
    @pytest.mark.parametrize(("cap", "asked"), [(0, 0), (5, 5), (20, 20), (-1, -1), (-1, 261), (-1, 21)])
    async def test_within_it(self, path: str, cap: int, asked: int) -> None:
        engine = ScriptedEngine(steps(104))
        answer(await post(application(engine, max_logprobs=cap), path, question(path, prompt_logprobs=asked)))
        assert engine.submitted[0].sampling.prompt_logprobs == asked

    @by_endpoint
    async def test_beyond_the_vocabulary(self, path: str) -> None:
        for asked in (262, -2):
            assert (await self.error(path, -1, prompt_logprobs=asked))["param"] == "prompt_logprobs"

    @pytest.mark.parametrize("asked", [21, -1, -2])
    async def test_echoed_rows_do_not_hide_it(self, asked: int) -> None:
        """The engine is asked once for both, with what the wider one of them needs."""
        for logprobs in (None, 0, 20):
            error = await self.error(COMPLETIONS, 20, echo=True, logprobs=logprobs, prompt_logprobs=asked)
            assert error["param"] == "prompt_logprobs"

    @pytest.mark.parametrize("logprobs", [21, -1, -2])
    async def test_the_field_that_is_too_wide_is_named(self, logprobs: int) -> None:
        error = await self.error(COMPLETIONS, 20, echo=True, logprobs=logprobs, prompt_logprobs=2)
        assert error["param"] == "logprobs"


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


@by_endpoint
@pytest.mark.parametrize(("asked", "told"), [(None, 8), (5, 5), (8, 8), (9, 8), (80, 8)])
async def test_no_answer_is_longer_than_the_operator_allows(path: str, asked: int | None, told: int) -> None:
    engine = ScriptedEngine(steps(104), max_model_len=100)
    response = await post(application(engine, max_output_tokens=8), path, question(path, max_tokens=asked))
    assert response.status_code == 200
    assert engine.submitted[0].sampling.max_tokens == told


@by_endpoint
async def test_a_limit_of_the_operators_lets_in_no_more_than_fits(path: str) -> None:
    engine = ScriptedEngine(steps(104), max_model_len=10)
    app = application(engine, max_output_tokens=50)
    assert error_of(await post(app, path, question(path, max_tokens=11)), 400)["param"] == "max_tokens"
    await post(app, path, question(path, max_tokens=10))
    assert engine.submitted[0].sampling.max_tokens == {CHAT: 6, COMPLETIONS: 8}[path]


@by_endpoint
async def test_a_minimum_above_that_limit_is_refused(path: str) -> None:
    app = application(ScriptedEngine(steps(104)), max_output_tokens=8)
    assert error_of(await post(app, path, question(path, min_tokens=9, max_tokens=20)), 400)["param"] == "min_tokens"
