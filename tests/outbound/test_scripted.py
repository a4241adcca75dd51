"""The scripted engine beyond the port: what a test may say, and what it may ask afterwards."""

import asyncio

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.ports.engine import EngineUnavailable
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, GenerationRequest, TokenDelta
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams


def asked(request_id: str = "r", logprobs: int | None = None) -> GenerationRequest:
    return GenerationRequest(request_id=request_id, prompt_token_ids=[1], sampling=SamplingParams(logprobs=logprobs))


async def played(engine: ScriptedEngine, request: GenerationRequest) -> list[TokenDelta]:
    return [delta async for delta in await engine.submit(request)]


def test_steps_score_each_token_beside_its_alternatives() -> None:
    first, last = steps(104, 105, 106, alternatives=[105, 7], tokens_per_step=2)
    assert first == TokenDelta(
        (104, 105),
        LogprobColumns(3, [104, 105, 7, 105, 105, 7], [-0.375, -0.125, -0.25, -0.125, -0.125, -0.25], [3, 1]),
    )
    assert last == TokenDelta(
        (106,), LogprobColumns(3, [106, 105, 7], [-0.375, -0.125, -0.25], [3]), finish_reason=FinishReason.LENGTH
    )


def test_steps_take_alternatives_per_token_and_an_end() -> None:
    first, last = steps(1, 2, alternatives=[[1], [9]], finish_reason=FinishReason.STOP, stop_reason=2)
    assert first.logprobs == LogprobColumns(2, [1, 1], [-0.125, -0.125], [1])
    assert last.logprobs == LogprobColumns(2, [2, 9], [-0.25, -0.125], [2])
    assert (last.finish_reason, last.stop_reason) == (FinishReason.STOP, 2)


def test_steps_without_alternatives_score_the_token_alone() -> None:
    (only,) = steps(104)
    assert only.logprobs == LogprobColumns(1, [104], [-0.125], [1])


async def test_a_script_without_an_end_ends_by_length() -> None:
    engine = ScriptedEngine([TokenDelta([1]), TokenDelta([2])])
    assert await played(engine, asked()) == [TokenDelta([1]), TokenDelta([2], finish_reason=FinishReason.LENGTH)]


async def test_a_script_that_ends_by_waiting_ends_by_length_after_it() -> None:
    gate = asyncio.Event()
    gate.set()
    engine = ScriptedEngine([TokenDelta([1]), gate])
    assert await played(engine, asked()) == [TokenDelta([1]), TokenDelta((), finish_reason=FinishReason.LENGTH)]


async def test_one_script_serves_all_and_several_serve_in_order() -> None:
    engine = ScriptedEngine(steps(1))
    assert [await played(engine, asked()) for _ in range(3)] == [
        [TokenDelta((1,), finish_reason=FinishReason.LENGTH)]
    ] * 3
    engine = ScriptedEngine(steps(1), steps(2))
    assert [(await played(engine, asked()))[0].token_ids for _ in range(2)] == [(1,), (2,)]
    with pytest.raises(AssertionError, match="one request more"):
        await engine.submit(asked())


@pytest.mark.parametrize("error", [EngineFailure("lost"), RequestError("no", "prompt")])
async def test_an_exception_is_raised_in_its_place(error: Exception) -> None:
    engine = ScriptedEngine([TokenDelta([1]), error])
    stream = await engine.submit(asked())
    assert await anext(stream) == TokenDelta([1])
    with pytest.raises(type(error)) as raised:
        await anext(stream)
    assert raised.value is error
    await stream.aclose()
    assert (engine.aborted, engine.running) == ([], 0)


async def test_an_exception_for_a_script_refuses_the_request() -> None:
    engine = ScriptedEngine(EngineUnavailable("full"))
    with pytest.raises(EngineUnavailable, match="full"):
        await engine.submit(asked())
    assert engine.submitted == []


@pytest.mark.parametrize("end", [EngineFailure("lost"), TokenDelta([1], finish_reason=FinishReason.STOP)])
def test_nothing_comes_after_an_end(end: TokenDelta | Exception) -> None:
    with pytest.raises(ValueError, match="the script goes on"):
        ScriptedEngine([end, TokenDelta([2])])


async def test_scores_are_cut_to_what_was_asked_for() -> None:
    engine = ScriptedEngine(steps(1, 2, alternatives=[8, 9], tokens_per_step=2))
    (delta,) = await played(engine, asked(logprobs=1))
    assert delta.logprobs == LogprobColumns(2, [1, 8, 2, 8], [-0.375, -0.125, -0.375, -0.125], [3, 3])
    (delta,) = await played(engine, asked(logprobs=20))
    assert delta.logprobs is not None
    assert delta.logprobs.width == 3
    (delta,) = await played(engine, asked())
    assert delta.logprobs is None


async def test_submissions_and_aborts_are_recorded_and_can_be_waited_for() -> None:
    engine = ScriptedEngine([asyncio.Event()])
    submitted = asyncio.create_task(engine.next_submitted())
    aborted = asyncio.create_task(engine.next_aborted())
    one, other = await engine.submit(asked("one")), await engine.submit(asked("other"))
    assert (await submitted).request_id == "one"
    assert engine.running == 2
    await other.aclose()
    await one.aclose()
    assert await aborted == "other"
    assert await engine.next_aborted() == "one"
    assert [request.request_id for request in engine.submitted] == ["one", "other"]
    assert engine.aborted == ["other", "one"]
    assert engine.running == 0


async def test_a_dead_engine_fails_what_runs_and_takes_nothing() -> None:
    engine = ScriptedEngine([asyncio.Event()])
    stream = await engine.submit(asked())
    engine.die(EngineFailure("burnt out"))
    assert not engine.is_alive
    with pytest.raises(EngineFailure, match="burnt out"):
        await anext(stream)
    with pytest.raises(EngineFailure, match="burnt out"):
        await engine.submit(asked())
    await stream.aclose()
    assert engine.aborted == []
