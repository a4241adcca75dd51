"""However a request ends, the engine is left with nothing of it, and it is counted once."""

import asyncio
from typing import Literal

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.ports.engine import EngineDead, EngineUnavailable, TokenStream
from application.ports.source import OnReady
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, GenerationRequest, TokenDelta, TokenUsage
from tests.application.serving import CONTEXT, completion, read, serve, services
from tests.fakes.metrics import RememberedMetrics


class TestRead:
    async def test_one_that_is_read_to_its_end_is_not_aborted(self) -> None:
        served = serve(steps(*b"hi!"))

        generation = await served(completion("ab"))
        deltas = await read(generation)

        assert "".join(delta.text for delta in deltas) == "hi!"
        assert served.engine.aborted == []
        assert served.metrics.ended == [("length", TokenUsage(2, 3))]
        assert served.is_idle

    async def test_usage_counts_as_deltas_are_read(self) -> None:
        generation = await serve(steps(*b"hi!"))(completion("ab"))

        counted = [generation.usage.completion_tokens]
        async for _ in generation:
            counted.append(generation.usage.completion_tokens)

        assert counted == [0, 1, 2, 3]

    async def test_cached_tokens_are_the_engines(self) -> None:
        served = serve([TokenDelta([104], cached_tokens=1), TokenDelta([105])])

        generation = await served(completion("ab"))
        await read(generation)

        assert generation.usage == TokenUsage(2, 2, 1)
        assert served.metrics.ended == [("length", TokenUsage(2, 2, 1))]

    async def test_usage_says_nothing_of_them_when_the_engine_does_not(self) -> None:
        generation = await serve(steps(104))(completion("ab"))
        await read(generation)

        assert generation.usage.cached_tokens is None


class TestClosed:
    async def test_unread_it_is_aborted_once(self) -> None:
        served = serve(steps(*b"hi!"))

        generation = await served(completion("ab"))
        await generation.aclose()
        await generation.aclose()

        assert served.engine.aborted == ["r-0"]
        assert served.metrics.ended == [("abort", TokenUsage(2, 0))]
        assert served.is_idle

    async def test_half_read_it_is_aborted_once_and_over(self) -> None:
        served = serve(steps(*b"hi!"))

        generation = await served(completion("ab"))
        await anext(generation)
        await generation.aclose()

        assert [delta async for delta in generation] == []
        assert served.engine.aborted == ["r-0"]
        assert served.metrics.ended == [("abort", TokenUsage(2, 1))]

    async def test_from_another_task_it_ends_the_one_that_waits(self) -> None:
        gate = Gate()
        served = serve([TokenDelta([104]), gate, TokenDelta([105])])
        generation = await served(completion("ab"))
        await anext(generation)

        reader = asyncio.create_task(read(generation))
        await gate.reached.wait()
        await generation.aclose()

        assert await reader == []
        assert served.engine.aborted == ["r-0"]
        assert served.metrics.reasons == ["abort"]
        assert served.is_idle

    async def test_one_of_two_leaves_the_other_alone(self) -> None:
        served = serve(steps(*b"hi!"))

        left = await served(completion("ab", request_id="left"))
        stayed = await served(completion("ab", request_id="stayed"))
        await left.aclose()

        assert "".join([delta.text async for delta in stayed]) == "hi!"
        assert served.engine.aborted == ["left-0"]
        assert sorted(served.metrics.reasons) == ["abort", "length"]


class TestCancelled:
    async def test_while_waiting_for_the_first_output_it_is_aborted(self) -> None:
        served = serve([asyncio.Event(), TokenDelta([104])])

        waiting = asyncio.create_task(served(completion("ab")))
        await served.engine.next_submitted()
        waiting.cancel()

        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert served.engine.aborted == ["r-0"]
        assert served.metrics.ended == [("abort", TokenUsage(2, 0))]
        assert served.is_idle


class TestEngineFailure:
    async def test_one_that_admits_nothing_starts_nothing(self) -> None:
        served = serve(EngineUnavailable("full"))

        with pytest.raises(EngineUnavailable, match="full"):
            await served(completion("ab"))

        assert served.metrics.started == 0

    async def test_before_the_first_output_it_is_the_callers_to_answer(self) -> None:
        served = serve([EngineFailure("out of memory")])

        with pytest.raises(EngineFailure, match="out of memory"):
            await served(completion("ab"))

        assert served.metrics.ended == [("error", TokenUsage(2, 0))]
        assert served.is_idle

    async def test_a_request_that_the_engine_refuses_stays_a_refusal(self) -> None:
        served = serve([RequestError("no such thing", "seed")])

        with pytest.raises(RequestError, match="no such thing") as refused:
            await served(completion("ab"))

        assert refused.value.param == "seed"
        assert served.metrics.reasons == ["error"]
        assert served.is_idle

    async def test_in_the_middle_it_comes_behind_what_was_generated(self) -> None:
        served = serve([TokenDelta([104]), EngineFailure("lost")])

        generation = await served(completion("ab"))
        first = await anext(generation)
        with pytest.raises(EngineFailure, match="lost"):
            await anext(generation)
        await generation.aclose()

        assert first.text == "h"
        assert served.metrics.ended == [("error", TokenUsage(2, 1))]
        assert served.is_idle

    async def test_nothing_comes_behind_it(self) -> None:
        generation = await serve([TokenDelta([104]), EngineFailure("lost")])(completion("ab"))
        await anext(generation)
        with pytest.raises(EngineFailure):
            await anext(generation)

        with pytest.raises(StopAsyncIteration):
            await anext(generation)

    async def test_a_dead_engine_fails_all_that_run(self) -> None:
        served = serve([TokenDelta([104]), asyncio.Event(), TokenDelta([105])])
        generations = [await served(completion("ab", request_id=name)) for name in "xy"]
        for generation in generations:
            await anext(generation)

        served.engine.die()

        for generation in generations:
            with pytest.raises(EngineDead):
                await anext(generation)
        assert served.metrics.reasons == ["error", "error"]
        assert served.is_idle

    async def test_an_end_without_an_output_is_one_too(self) -> None:
        metrics = RememberedMetrics()
        complete_text, _ = services(SilentEngine(), metrics)

        with pytest.raises(EngineFailure):
            await complete_text(completion("ab"))

        assert metrics.ended == [("error", TokenUsage(2, 0))]


class TestAborted:
    """By its id, while its client is behind."""

    async def test_what_came_before_is_read_first(self) -> None:
        served = serve([*steps(*b"hi")[:1], TokenDelta([105]), asyncio.Event()])
        generation = await served(completion("ab"))

        generation.abort()

        assert [(delta.text, delta.finish_reason) for delta in await read(generation)] == [
            ("h", None),
            ("i", None),
            ("", FinishReason.ABORT),
        ]
        assert served.engine.aborted == ["r-0"]

    async def test_one_that_has_ended_meanwhile_ends_as_it_did(self) -> None:
        served = serve(steps(*b"hi"))
        generation = await served(completion("ab"))

        generation.abort()

        assert [(delta.text, delta.finish_reason) for delta in await read(generation)] == [
            ("h", None),
            ("i", FinishReason.LENGTH),
        ]
        assert served.engine.aborted == []

    async def test_one_that_has_failed_meanwhile_fails(self) -> None:
        served = serve([TokenDelta([104]), TokenDelta([105]), EngineFailure("lost")])
        generation = await served(completion("ab"))

        generation.abort()

        assert [(await anext(generation)).text for _ in range(2)] == ["h", "i"]
        with pytest.raises(EngineFailure, match="lost"):
            await anext(generation)
        assert served.metrics.reasons == ["error"]


class SilentEngine(ScriptedEngine):
    """Breaks its promise: its streams end before their first output."""

    def __init__(self) -> None:
        super().__init__(steps(104), max_model_len=CONTEXT)

    async def submit(self, request: GenerationRequest) -> TokenStream:
        return SilentStream()


class SilentStream(TokenStream):
    def listen(self, on_ready: OnReady) -> None:
        pass

    def take(self) -> TokenDelta | None:
        raise StopAsyncIteration

    def close(self) -> None:
        pass


class Gate(asyncio.Event):
    """A step of a script that tells when the stream has come to it."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.reached.set()
        return await super().wait()
