"""Requests and tokens over real sockets."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import uvloop
from msgspec import structs

from adapters.outbound.vllm_engine.client import NumberTooLarge, ZmqEngineCore
from adapters.outbound.vllm_engine.grammar_backends import FormNotSupported
from adapters.outbound.vllm_engine.outputs import RefusedByEngine
from adapters.outbound.vllm_engine.stream import merged
from adapters.outbound.vllm_engine.tensors import pack_prompt_rows, pack_rows
from adapters.outbound.vllm_engine.wire import (
    QUEUED,
    SCHEDULED,
    EngineCoreOutput,
    EngineCoreOutputs,
    EngineEvent,
    EngineStructuredOutputs,
    FinishCode,
    OutputError,
    OutputKind,
    PrefillStats,
    SchedulerStats,
    UtilityOutput,
    encode,
)
from application.ports.engine import EngineUnavailable, NoSuchEngine
from domain.errors import EngineFailure
from domain.generation import FinishReason, TokenDelta
from domain.logprobs import LogprobColumns
from domain.speculation import Speculation
from domain.structured_outputs import Choice, JsonObject, Regex, StructuredOutputs
from domain.timing import EngineStart
from tests.e2e.engines import connected, read, request
from tests.fakes.scripted_engine_core import ScriptedEngineCore, soon


@pytest.fixture
async def core() -> AsyncIterator[ScriptedEngineCore]:
    async with ScriptedEngineCore() as core:
        yield core


@pytest.fixture
async def engine(core: ScriptedEngineCore) -> AsyncIterator[ZmqEngineCore]:
    async with connected(core) as engine:
        yield engine


async def test_a_request_arrives(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    await engine.submit(request("cmpl-1", max_tokens=7, temperature=0.5, eos_token_id=2))
    arrived = await core.next_request()
    external, _, suffix = arrived.request_id.rpartition("-")
    assert (external, len(suffix), arrived.external_req_id) == ("cmpl-1", 8, "cmpl-1")
    assert arrived.prompt_token_ids == [1, 2, 3]
    assert (arrived.client_index, arrived.current_wave) == (0, 0)
    sampling = arrived.sampling_params
    assert sampling is not None
    assert (sampling.max_tokens, sampling.temperature, sampling.eos_token_id) == (7, 0.5, 2)
    assert sampling.output_kind == OutputKind.DELTA


async def test_tokens_come_back(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request())
    internal = (await core.next_request()).request_id
    await core.step(internal, 104, prefill_stats=PrefillStats(num_cached_tokens=2, num_cache_creation_tokens=1))
    assert await soon(anext(stream)) == TokenDelta([104], cached_tokens=2, created_cache_tokens=1)
    await core.step(internal, 105, 106)
    assert await soon(anext(stream)) == TokenDelta([105, 106])
    await core.step(internal, 2, finish_reason=FinishCode.STOP, stop_reason=2)
    assert await read(stream) == [TokenDelta([2], finish_reason=FinishReason.STOP, stop_reason=2)]
    assert await read(stream) == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (FinishCode.STOP, FinishReason.STOP),
        (FinishCode.LENGTH, FinishReason.LENGTH),
        (FinishCode.ABORT, FinishReason.ABORT),
        (FinishCode.REPETITION, FinishReason.REPETITION),
    ],
)
async def test_finish_reasons(
    engine: ZmqEngineCore, core: ScriptedEngineCore, code: FinishCode, reason: FinishReason
) -> None:
    stream = await engine.submit(request())
    await core.step((await core.next_request()).request_id, finish_reason=code)
    assert await read(stream) == [TokenDelta([], finish_reason=reason)]


async def test_rows_are_as_wide_as_each_request_asked_for(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    """All three share a step, whose rows are as wide as the widest request's."""
    streams = [await engine.submit(request(logprobs=logprobs)) for logprobs in (0, 2, -1)]
    frames = [b""]
    engine_rows = LogprobColumns(70, list(range(140)), [-0.5 * i for i in range(140)], [1, 4])
    rows = pack_rows(engine_rows, frames)
    outputs = [
        EngineCoreOutput((await core.next_request()).request_id, [0, 70], rows, finish_reason=FinishCode.LENGTH)
        for _ in streams
    ]
    await core.send(*outputs, frames=frames[1:])
    narrow, three, whole = [(await read(stream))[0].logprobs for stream in streams]
    assert len(frames) == 3
    assert narrow == LogprobColumns(1, [0, 70], [0.0, -35.0], [1, 4])
    assert three == LogprobColumns(3, [0, 1, 2, 70, 71, 72], [0.0, -0.5, -1.0, -35.0, -35.5, -36.0], [1, 4])
    assert whole == engine_rows


async def test_prompt_rows_come_with_the_first_output(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request(prompt_logprobs=1))
    scores = LogprobColumns(2, [2, 9, 3, 8], [-0.5, -0.25, -1.0, -0.125], [3, 2])
    rows = pack_prompt_rows(scores, [b""])
    await core.step((await core.next_request()).request_id, 4, new_prompt_logprobs_tensors=rows)
    assert await soon(anext(stream)) == TokenDelta([4], prompt_logprobs=scores)


async def test_steps_that_piled_up_come_as_one(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    piled, other = await engine.submit(request(logprobs=0)), await engine.submit(request())
    internal, marker = (await core.next_request()).request_id, (await core.next_request()).request_id

    def output(token: int, finish: int | None = None) -> EngineCoreOutput:
        columns = pack_rows(LogprobColumns(1, [token], [-0.5 * token], [token]), [b""])
        return EngineCoreOutput(internal, [token], columns, finish_reason=finish)

    await core.send(output(5))
    await core.send(output(6))
    await core.send(output(7, FinishCode.LENGTH))
    await core.step(marker, 1)
    await soon(anext(other))  # so the others are there
    assert await read(piled) == [
        TokenDelta(
            [5, 6, 7], LogprobColumns(1, [5, 6, 7], [-2.5, -3.0, -3.5], [5, 6, 7]), finish_reason=FinishReason.LENGTH
        )
    ]


async def test_a_step_of_many_requests_wakes_each(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    streams = [await engine.submit(request(f"r{index}")) for index in range(50)]
    reading = [asyncio.create_task(read(stream)) for stream in streams]
    ids = [(await core.next_request()).request_id for _ in streams]
    for token in range(20):
        finish = FinishCode.LENGTH if token == 19 else None
        await core.send(*(EngineCoreOutput(internal, [token], finish_reason=finish) for internal in ids))
    for deltas in await asyncio.gather(*reading):
        assert [token for delta in deltas for token in delta.token_ids] == list(range(20))


async def test_one_request_id_for_several_requests(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    streams = [await engine.submit(request("same")) for _ in range(2)]
    internal = [(await core.next_request()).request_id for _ in streams]
    assert internal[0] != internal[1]
    await core.step(internal[1], 2, finish_reason=FinishCode.LENGTH)
    await core.step(internal[0], 1, finish_reason=FinishCode.LENGTH)
    assert [(await read(stream))[0].token_ids for stream in streams] == [[1], [2]]


async def test_closing_aborts_exactly_once(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request("gone"))
    internal = (await core.next_request()).request_id
    await stream.aclose()
    await stream.aclose()
    assert await core.next_abort() == [internal]
    assert await read(stream) == []
    await engine.submit(request("next"))
    assert (await core.next_request()).external_req_id == "next"  # and no second abort before it


async def test_closing_wakes_who_waits(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request())
    internal = (await core.next_request()).request_id
    waiting = asyncio.create_task(read(stream))
    await asyncio.sleep(0)
    await stream.aclose()
    assert await soon(waiting) == []
    assert await core.next_abort() == [internal]


async def test_cancelling_who_waits_loses_nothing(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request())
    internal = (await core.next_request()).request_id
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await core.step(internal, 1, finish_reason=FinishCode.LENGTH)
    assert await read(stream) == [TokenDelta([1], finish_reason=FinishReason.LENGTH)]


async def test_what_has_ended_is_not_aborted(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    read_to_the_end, unread = await engine.submit(request()), await engine.submit(request())
    for _ in range(2):
        await core.step((await core.next_request()).request_id, 1, finish_reason=FinishCode.STOP)
    await read(read_to_the_end)
    await read_to_the_end.aclose()
    # the other's end has been received too, as the marker behind it shows
    marker = await engine.submit(request())
    await core.step((await core.next_request()).request_id, 1)
    await soon(anext(marker))
    await unread.aclose()
    await engine.submit(request("next"))
    assert (await core.next_request()).external_req_id == "next"


async def test_outputs_of_unknown_requests_are_ignored(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request())
    internal = (await core.next_request()).request_id
    await core.step("of-nobody", 1, finish_reason=FinishCode.ABORT)
    await core.step(internal, 1, finish_reason=FinishCode.STOP)
    await core.step(internal, 2, finish_reason=FinishCode.STOP)
    assert len(await read(stream)) == 1
    assert engine.is_alive


@pytest.mark.parametrize(
    ("error", "failure", "message"),
    [
        (None, EngineFailure, "Internal server error"),
        (OutputError("validation_error", "bad grammar"), RefusedByEngine, "bad grammar"),
        (OutputError("engine_paused", "paused for a while", retryable=True), EngineUnavailable, "paused for a while"),
        (OutputError("of_the_future", "whatever"), EngineFailure, "whatever"),
    ],
)
async def test_a_failed_request(
    engine: ZmqEngineCore,
    core: ScriptedEngineCore,
    error: OutputError | None,
    failure: type[Exception],
    message: str,
) -> None:
    stream = await engine.submit(request())
    internal = (await core.next_request()).request_id
    await core.step(internal, 1)
    await core.step(internal, finish_reason=FinishCode.ERROR, error=error)
    assert await soon(anext(stream)) == TokenDelta([1])
    with pytest.raises(failure, match=message) as raised:
        await soon(anext(stream))
    assert raised.type is failure
    await stream.aclose()
    await engine.submit(request("next"))
    assert (await core.next_request()).external_req_id == "next"  # no abort of what has failed


async def test_a_form_that_does_not_compile_is_the_callers(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    """An engine before 0.33 fails over it, and only says so; once it generates, it compiled."""
    structured = StructuredOutputs(form=Regex("("), param="response_format")
    for tokens, failure in (([], RefusedByEngine), ([1], EngineFailure)):
        stream = await engine.submit(request(structured_outputs=structured))
        internal = (await core.next_request()).request_id
        if tokens:
            await core.step(internal, *tokens)
        await core.step(internal, finish_reason=FinishCode.ERROR)
        with pytest.raises(failure) as raised:
            await read(stream)
        assert raised.type is failure
    assert engine.is_alive


async def test_a_form_is_for_the_library_that_the_engine_is_set_to(core: ScriptedEngineCore) -> None:
    async with connected(core, grammar_backend="outlines") as engine:
        await engine.submit(request(structured_outputs=StructuredOutputs(form=Choice(["a", "b"]))))
        sampling = (await core.next_request()).sampling_params
        assert sampling is not None
        asked = sampling.structured_outputs
        assert asked == EngineStructuredOutputs(choice=["a", "b"], backend="outlines")
        with pytest.raises(FormNotSupported):
            await engine.submit(request(structured_outputs=StructuredOutputs(form=JsonObject())))
        await engine.submit(request("next"))
        assert (await core.next_request()).external_req_id == "next"


async def test_a_finish_reason_of_the_future_fails_the_request(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request())
    await core.step((await core.next_request()).request_id, finish_reason=9)
    with pytest.raises(EngineFailure, match="reason 9"):
        await read(stream)
    assert engine.is_alive


async def test_numbers_of_more_than_64_bits_are_refused(engine: ZmqEngineCore) -> None:
    with pytest.raises(NumberTooLarge):
        await engine.submit(request(seed=2**64))


async def test_each_request_goes_to_the_least_loaded_engine() -> None:
    async with ScriptedEngineCore(0) as first, ScriptedEngineCore(1) as second, connected(first, second) as engine:
        streams = [await engine.submit(request(f"r{index}")) for index in range(4)]
        at_first = [(await first.next_request()) for _ in range(2)]
        at_second = [(await second.next_request()) for _ in range(2)]
        assert {r.external_req_id for r in at_first} == {"r0", "r2"}
        assert {r.external_req_id for r in at_second} == {"r1", "r3"}
        for index in (1, 3):
            await streams[index].aclose()
        assert [await second.next_abort() for _ in range(2)] == [[r.request_id] for r in at_second]
        for index in range(2):
            await engine.submit(request(f"s{index}"))
        assert {(await second.next_request()).external_req_id for _ in range(2)} == {"s0", "s1"}
        # tokens come from both, and an abort goes where the request is
        await first.step(at_first[0].request_id, 7, finish_reason=FinishCode.LENGTH)
        assert (await read(streams[0]))[0].token_ids == [7]
        await streams[2].aclose()
        assert await first.next_abort() == [at_first[1].request_id]


async def test_letting_go_aborts_and_ends_what_runs(core: ScriptedEngineCore) -> None:
    async with connected(core) as engine:
        stream = await engine.submit(request())
        internal = (await core.next_request()).request_id
    assert await core.next_abort() == [internal]
    with pytest.raises(EngineFailure, match="shutting down"):
        await read(stream)
    with pytest.raises(EngineFailure):
        await engine.submit(request())
    await stream.aclose()
    await engine.aclose()


async def test_messages_of_other_kinds_change_nothing(engine: ZmqEngineCore, core: ScriptedEngineCore) -> None:
    stream = await engine.submit(request())
    internal = (await core.next_request()).request_id
    await core.send()
    await core.send_frames(encode(EngineCoreOutputs(scheduler_stats=SchedulerStats(), wave_complete=1)))
    await core.send_frames(encode(EngineCoreOutputs(utility_output=UtilityOutput(7))), b"frame")
    await core.step(internal, 1, finish_reason=FinishCode.LENGTH)
    assert len(await read(stream)) == 1


def test_the_same_on_uvloop() -> None:
    async def scenario() -> None:
        async with ScriptedEngineCore() as core, connected(core) as engine:
            stream = await engine.submit(request())
            internal = (await core.next_request()).request_id
            await core.step(internal, 1)
            assert await soon(anext(stream)) == TokenDelta([1])
            await core.step(internal, 2)
            assert await soon(anext(stream)) == TokenDelta([2])
            await stream.aclose()
            assert await core.next_abort() == [internal]
            core.disconnect()
            await soon(engine.died.wait())

    uvloop.run(scenario())


async def test_times_are_the_engine_s_and_those_of_piled_up_steps_its_first_and_last(
    engine: ZmqEngineCore, core: ScriptedEngineCore
) -> None:
    stream = await engine.submit(request())
    internal_id = (await core.next_request()).request_id
    preempted = [EngineEvent(3, 12.0), EngineEvent(SCHEDULED, 13.0)]
    events = [EngineEvent(QUEUED, 10.0), EngineEvent(SCHEDULED, 11.0), *preempted]
    await core.send(EngineCoreOutput(internal_id, [1], events=events), at=14.0)
    await core.send(EngineCoreOutput(internal_id, [2], events=preempted), at=15.0)
    await core.send(EngineCoreOutput(internal_id, [3], finish_reason=FinishCode.LENGTH), at=16.0)
    deltas = await read(stream)
    assert deltas[0].start == EngineStart(10.0, 11.0, 14.0)
    assert [delta.start for delta in deltas[1:]] == [None] * (len(deltas) - 1)
    assert deltas[-1].produced_at == 16.0


def test_merged_steps_keep_what_the_last_tells_of_drafts() -> None:
    told = Speculation(2, [0, 1], 2)
    steps = [TokenDelta([1]), TokenDelta([2], finish_reason=FinishReason.LENGTH, speculation=told)]
    assert merged(steps).speculation == told


def test_merged_steps_keep_when_the_first_and_the_last_was() -> None:
    start = EngineStart(1.0, 2.0, 3.0)
    steps = [TokenDelta([1], start=start, produced_at=3.0), TokenDelta([2], produced_at=4.0)]
    assert (merged(steps).start, merged(steps).produced_at) == (start, 4.0)


async def test_a_rank_names_the_engine() -> None:
    async with ScriptedEngineCore(0) as first, ScriptedEngineCore(1) as second, connected(first, second) as engine:
        for rank, core in ((1, second), (1, second), (0, first)):
            await engine.submit(structs.replace(request(f"r{rank}"), data_parallel_rank=rank))
            asked = await core.next_request()
            assert (asked.external_req_id, asked.data_parallel_rank) == (f"r{rank}", rank)
        for rank in (-1, 2):
            with pytest.raises(NoSuchEngine):
                await engine.submit(structs.replace(request("r"), data_parallel_rank=rank))
