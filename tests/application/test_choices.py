"""Several prompts in one request: a generation each, read together, and none left behind."""

import asyncio

import pytest
from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import Script, Step, steps
from application.ports.engine import EngineUnavailable
from application.requests import Completion
from application.services.choices import Choices
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, TokenDelta, TokenUsage
from domain.prompt import OutOfVocabulary
from domain.sampling import SamplingParams
from tests.application.serving import Served, completion, serve

H = TokenDelta([104])


def several(*prompts: str | list[int], sampling: SamplingParams | None = None) -> Completion:
    return replace(completion(sampling=sampling), prompts=prompts)


async def started(served: Served, *prompts: str | list[int]) -> Choices:
    return await served.complete_text(several(*prompts))


async def arrivals(choices: Choices) -> list[tuple[int, str]]:
    """The index of a choice and its text, as they come."""
    try:
        return [(index, delta.text) async for index, delta in choices]
    finally:
        await choices.aclose()


def waits(*before: Step) -> Script:
    return [*before, asyncio.Event()]


async def test_each_is_a_request_of_its_own_known_by_its_place() -> None:
    served = serve(steps(104))

    await arrivals(await started(served, "a", [98, 99], "a"))

    assert [request.request_id for request in served.engine.submitted] == ["r-0", "r-1", "r-2"]
    assert [bytes(request.prompt_token_ids) for request in served.engine.submitted] == [b"a", b"bc", b"a"]
    assert served.is_idle


async def test_each_may_go_on_for_as_long_as_it_has_room() -> None:
    served = serve(steps(104))

    await arrivals(await started(served, "a" * 90, "b"))

    assert [request.sampling.max_tokens for request in served.engine.submitted] == [10, 99]


async def test_generations_are_in_the_order_of_the_prompts() -> None:
    choices = await started(serve(steps(104)), "ab", "c")

    assert [generation.prompt.text for generation in choices.generations] == ["ab", "c"]
    await choices.aclose()


async def test_deltas_come_as_the_engine_brings_them() -> None:
    gates = [asyncio.Event() for _ in range(3)]
    served = serve(
        [gates[0], TokenDelta([97]), gates[2], TokenDelta([98])], [TokenDelta([120]), gates[1], TokenDelta([121])]
    )

    choices = await started(served, "p", "q")
    found = []
    for gate in [*gates, None]:
        index, delta = await anext(choices)
        found.append((index, delta.text))
        if gate:
            gate.set()

    assert found == [(1, "x"), (0, "a"), (1, "y"), (0, "b")]
    with pytest.raises(StopAsyncIteration):
        await anext(choices)
    assert served.is_idle


async def test_it_starts_with_the_first_output_of_any() -> None:
    served = serve(waits(), waits(H), waits())

    choices = await started(served, "a", "b", "c")
    index, delta = await anext(choices)
    await choices.aclose()

    assert (index, delta.text) == (1, "h")


async def test_usage_is_that_of_all() -> None:
    served = serve(steps(*b"hi"), steps(104))

    choices = await started(served, "abc", "d")
    await arrivals(choices)

    assert (choices.usage.prompt_tokens, choices.usage.completion_tokens) == (4, 3)
    ended = sorted((usage for _, usage in served.metrics.ended), key=lambda usage: usage.prompt_tokens)
    assert ended == [TokenUsage(1, 1), TokenUsage(3, 2)]


@pytest.mark.parametrize("flag", [True, False])
async def test_the_rule_is_one_for_all(flag: bool) -> None:
    choices = await started(serve(steps(104), flag=flag), "a", "b")

    assert choices.show_token_ids is flag
    assert [generation.show_token_ids for generation in choices.generations] == [flag, flag]
    await choices.aclose()


class TestRefused:
    async def test_one_that_no_model_takes_is_told_before_any_is_admitted(self) -> None:
        served = serve(steps(104))

        with pytest.raises(OutOfVocabulary):
            await started(served, "a", [261])

        assert served.engine.submitted == []
        assert served.metrics.started == 0

    async def test_when_the_engine_is_full_those_before_are_called_off(self) -> None:
        served = serve(waits(H), waits(H), EngineUnavailable("full"))

        with pytest.raises(EngineUnavailable):
            await started(served, "a", "b", "c")

        assert served.engine.aborted == ["r-0", "r-1"]
        assert served.metrics.reasons == ["abort", "abort"]
        assert served.is_idle

    async def test_when_the_engine_refuses_one_the_others_are_called_off(self) -> None:
        served = serve(waits(), [RequestError("not that", "seed")], waits())

        with pytest.raises(RequestError, match="not that") as refused:
            await started(served, "a", "b", "c")

        assert refused.value.param == "seed"
        assert sorted(served.engine.aborted) == ["r-0", "r-2"]
        assert sorted(served.metrics.reasons) == ["abort", "abort", "error"]
        assert served.is_idle


class TestEnds:
    async def test_a_failure_comes_behind_what_came_before(self) -> None:
        gate = asyncio.Event()
        served = serve([H, gate, EngineFailure("lost")], waits(H))

        choices = await started(served, "a", "b")
        assert sorted([(await anext(choices))[0], (await anext(choices))[0]]) == [0, 1]
        gate.set()
        with pytest.raises(EngineFailure, match="lost"):
            await anext(choices)
        await choices.aclose()

        assert served.engine.aborted == ["r-1"]
        assert sorted(served.metrics.reasons) == ["abort", "error"]
        assert served.is_idle

    async def test_closing_aborts_each_that_runs_once(self) -> None:
        ended: Script = [TokenDelta([104], finish_reason=FinishReason.STOP)]
        served = serve(waits(H), ended, waits())

        choices = await started(served, "a", "b", "c")
        for _ in range(2):
            await anext(choices)
        await choices.aclose()
        await choices.aclose()

        assert sorted(served.engine.aborted) == ["r-0", "r-2"]
        assert sorted(served.metrics.reasons) == ["abort", "abort", "stop"]
        assert served.is_idle

    async def test_closing_ends_the_one_that_waits(self) -> None:
        served = serve(waits(H), waits())
        choices = await started(served, "a", "b")
        await anext(choices)

        reading = asyncio.create_task(arrivals(choices))
        await asyncio.sleep(0)  # it waits after the loop's next round
        await choices.aclose()

        assert await reading == []
        assert served.is_idle

    async def test_nothing_comes_behind_it(self) -> None:
        choices = await started(serve(steps(*b"hi"), steps(*b"yo")), "a", "b")
        await choices.aclose()

        with pytest.raises(StopAsyncIteration):
            await anext(choices)

    async def test_cancelled_before_any_output_each_is_aborted(self) -> None:
        served = serve(waits(), waits(), waits())

        waiting = asyncio.create_task(started(served, "a", "b", "c"))
        for _ in range(3):
            await served.engine.next_submitted()
        waiting.cancel()

        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert sorted(served.engine.aborted) == ["r-0", "r-1", "r-2"]
        assert served.metrics.reasons == ["abort"] * 3
        assert served.is_idle


async def test_choices_are_read_little_ahead_of_a_slow_client() -> None:
    choices = await started(serve(steps(*[104] * 50)), "a", "b")
    for _ in range(500):
        await asyncio.sleep(0)
    assert choices.usage.completion_tokens <= 6

    assert sorted(await arrivals(choices)) == [(0, "h")] * 50 + [(1, "h")] * 50


async def test_closing_leaves_nothing_for_a_slow_client() -> None:
    served = serve(steps(*[104] * 50))
    choices = await started(served, "a", "b")
    for _ in range(50):
        await asyncio.sleep(0)
    await choices.aclose()

    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [delta async for delta in choices] == []
    assert served.is_idle
