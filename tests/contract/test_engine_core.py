"""What every engine promises: the port's docstrings, one by one, for each implementation."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import Script, steps
from application.ports.engine import NoSuchEngine, TokenStream
from domain.errors import EngineFailure
from domain.generation import FinishReason, GenerationRequest, TokenDelta
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams
from tests.contract.engines import EngineUnderTest, eventually, open_engine
from tests.contract.reading import OneAtACall
from tests.fakes.gguf import needs_llama_cpp
from tests.patience import PATIENCE_S

EOS = 257
PROMPT = list(b"tell me")
HELLO = list(b"hello")
LONG = 5000

Opener = Callable[..., Coroutine[Any, Any, EngineUnderTest]]

LLAMACPP = pytest.param("llamacpp", marks=needs_llama_cpp)

generating = pytest.mark.parametrize("kind", ["mock", "zmq", LLAMACPP], indirect=True)
"""For what a scripted engine leaves to its script."""


@pytest.fixture(params=["scripted", "mock", "zmq", LLAMACPP])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
async def opened(kind: str) -> AsyncIterator[Opener]:
    async with AsyncExitStack() as stack:

        async def enter(*scripts: Script, tokens_per_step: int = 1, step_seconds: float = 0.001) -> EngineUnderTest:
            script = scripts or (steps(*HELLO, alternatives=[1, 2, 3, 4, 5], tokens_per_step=tokens_per_step),)
            return await stack.enter_async_context(
                open_engine(kind, *script, tokens_per_step=tokens_per_step, step_seconds=step_seconds)
            )

        yield enter


@pytest.fixture
async def answering(opened: Opener) -> EngineUnderTest:
    """Answers every request."""
    return await opened()


@pytest.fixture
async def silent(opened: Opener) -> EngineUnderTest:
    """Admits every request, and then gives nothing."""
    return await opened([asyncio.Event()], step_seconds=3600)


def asked(request_id: str = "r", prompt: list[int] = PROMPT, **sampling: Any) -> GenerationRequest:
    params = SamplingParams(**{"max_tokens": 5, "eos_token_id": EOS, "seed": 7, **sampling})
    return GenerationRequest(request_id=request_id, prompt_token_ids=prompt, sampling=params)


async def all_of(stream: TokenStream) -> list[TokenDelta]:
    async with asyncio.timeout(PATIENCE_S):
        return [delta async for delta in stream]


async def answer(under_test: EngineUnderTest, request: GenerationRequest) -> list[TokenDelta]:
    stream = await under_test.engine.submit(request)
    try:
        return await all_of(stream)
    finally:
        await stream.aclose()


def ids_of(deltas: list[TokenDelta]) -> list[int]:
    return [token_id for delta in deltas for token_id in delta.token_ids]


def scores_of(deltas: list[TokenDelta]) -> list[LogprobColumns]:
    return [delta.logprobs for delta in deltas if delta.logprobs is not None]


def rows_of(columns: LogprobColumns) -> list[list[tuple[int, float]]]:
    cells = list(zip(columns.token_ids, columns.logprobs, strict=True))
    return [cells[start : start + columns.width] for start in range(0, len(cells), columns.width)]


def firsts(columns: LogprobColumns) -> list[int]:
    return list(columns.token_ids[:: columns.width])


async def test_an_engine_says_what_it_is(answering: EngineUnderTest) -> None:
    assert answering.engine.max_model_len == 8192
    assert answering.engine.version
    assert answering.engine.is_alive


@pytest.mark.parametrize("tokens_per_step", [1, 3])
async def test_only_the_last_delta_has_a_finish(opened: Opener, tokens_per_step: int) -> None:
    deltas = await answer(await opened(tokens_per_step=tokens_per_step), asked())
    assert [delta.finish_reason for delta in deltas] == [None] * (len(deltas) - 1) + [FinishReason.LENGTH]
    assert len(ids_of(deltas)) == 5


async def test_nothing_comes_after_the_end(answering: EngineUnderTest) -> None:
    stream = await answering.engine.submit(asked())
    await all_of(stream)
    assert await all_of(stream) == []
    await stream.aclose()


@pytest.mark.parametrize("alternatives", [0, 1, 5])
@pytest.mark.parametrize("tokens_per_step", [1, 3])
async def test_each_token_has_a_row_as_wide_as_asked(opened: Opener, tokens_per_step: int, alternatives: int) -> None:
    deltas = await answer(await opened(tokens_per_step=tokens_per_step), asked(logprobs=alternatives))
    assert ids_of(deltas)
    for delta in deltas:
        assert delta.logprobs is not None
        assert delta.logprobs.width == alternatives + 1
        assert delta.logprobs.rows == len(delta.token_ids)
        assert len(delta.logprobs.token_ids) == len(delta.logprobs.logprobs) == delta.logprobs.rows * (alternatives + 1)
        assert firsts(delta.logprobs) == list(delta.token_ids)
        assert all(rank >= 1 for rank in delta.logprobs.ranks)


async def test_a_wide_request_beside_it_widens_no_rows(answering: EngineUnderTest) -> None:
    narrow, wide, none = await asyncio.gather(
        answer(answering, asked(logprobs=1)), answer(answering, asked(logprobs=5)), answer(answering, asked())
    )
    assert {columns.width for columns in scores_of(narrow)} == {2}
    assert {columns.width for columns in scores_of(wide)} == {6}
    assert scores_of(none) == []


async def test_no_scores_unless_asked(answering: EngineUnderTest) -> None:
    deltas = await answer(answering, asked())
    assert all(delta.logprobs is None and delta.prompt_logprobs is None for delta in deltas)


async def test_prompt_scores_come_with_the_first_output_only(opened: Opener) -> None:
    script = steps(*HELLO)
    rows = steps(*PROMPT[1:], alternatives=[9, 8, 7], tokens_per_step=len(PROMPT))[0].logprobs
    script[0] = replace(script[0], prompt_logprobs=rows)
    first, *rest = await answer(await opened(script), asked(prompt_logprobs=2, max_tokens=50))
    assert first.prompt_logprobs is not None
    assert first.prompt_logprobs.width == 3
    assert first.prompt_logprobs.rows == len(PROMPT) - 1
    assert firsts(first.prompt_logprobs) == PROMPT[1:]
    assert all(delta.prompt_logprobs is None for delta in rest)


@generating
async def test_logprobs_of_the_whole_vocabulary(answering: EngineUnderTest) -> None:
    for delta in await answer(answering, asked(logprobs=-1, prompt_logprobs=-1, max_tokens=2)):
        assert delta.logprobs is not None
        assert delta.logprobs.width == 1 + answering.vocab_size
        assert sorted(delta.logprobs.token_ids[1 : delta.logprobs.width]) == list(range(answering.vocab_size))


@generating
@pytest.mark.parametrize("tokens_per_step", [1, 3])
async def test_chosen_ids_stand_in_their_order_with_the_scores_they_have_among_all(
    opened: Opener, tokens_per_step: int
) -> None:
    chosen = [200, 7, EOS, 7, 0]
    answering = await opened(tokens_per_step=tokens_per_step)
    everything = scores_of(await answer(answering, asked(logprobs=-1)))
    scored = await answer(answering, asked(logprobs=0, logprob_token_ids=chosen, prompt_logprobs=2))

    full = [row for columns in everything for row in rows_of(columns)]
    rows = [row for columns in scores_of(scored) for row in rows_of(columns)]
    assert [[token_id for token_id, _ in row] for row in rows] == [[first, *chosen] for first in ids_of(scored)]
    assert len(rows) == len(full) == 5
    for row, among in zip(rows, full, strict=True):
        assert all(dict(among)[token_id] == logprob for token_id, logprob in row)
    assert scored[0].prompt_logprobs is not None
    assert scored[0].prompt_logprobs.width == 3, "the prompt's rows keep the likeliest"


@generating
async def test_chosen_ids_beside_other_widths(answering: EngineUnderTest) -> None:
    one, three, natural = await asyncio.gather(
        answer(answering, asked(logprobs=0, logprob_token_ids=[9])),
        answer(answering, asked(logprobs=5, logprob_token_ids=[9, 8, 7])),
        answer(answering, asked(logprobs=2)),
    )
    assert {columns.width for columns in scores_of(one)} == {2}
    assert {columns.width for columns in scores_of(three)} == {4}
    assert {columns.width for columns in scores_of(natural)} == {3}


@generating
async def test_an_answer_ends_with_its_end_token(answering: EngineUnderTest) -> None:
    deltas = await answer(answering, asked(max_tokens=100, logit_bias={EOS: 100}))
    assert ids_of(deltas)[-1] == EOS
    assert deltas[-1].finish_reason is FinishReason.STOP
    assert deltas[-1].stop_reason is None


@generating
async def test_ignore_eos_goes_on(answering: EngineUnderTest) -> None:
    deltas = await answer(answering, asked(max_tokens=100, ignore_eos=True))
    assert len(ids_of(deltas)) == 100
    assert deltas[-1].finish_reason is FinishReason.LENGTH


@generating
async def test_a_stop_token_ends_the_answer_and_is_part_of_it(answering: EngineUnderTest) -> None:
    whole = ids_of(await answer(answering, asked()))
    deltas = await answer(answering, asked(stop_token_ids=[whole[2]]))
    assert ids_of(deltas) == whole[: whole.index(whole[2]) + 1]
    assert deltas[-1].finish_reason is FinishReason.STOP
    assert deltas[-1].stop_reason == whole[2]


@generating
async def test_nothing_stops_before_min_tokens(answering: EngineUnderTest) -> None:
    deltas = await answer(answering, asked(max_tokens=200, min_tokens=80, logit_bias={EOS: 100}))
    assert len(ids_of(deltas)) > 80
    assert deltas[-1].finish_reason is FinishReason.STOP


async def test_the_same_prompt_and_seed_give_the_same_answer(answering: EngineUnderTest) -> None:
    request = asked(seed=7, logprobs=2, max_tokens=20)
    first, second = await asyncio.gather(answer(answering, request), answer(answering, request))
    assert ids_of(first) == ids_of(second)
    assert [x for columns in scores_of(first) for x in columns.logprobs] == [
        x for columns in scores_of(second) for x in columns.logprobs
    ]


@generating
async def test_another_seed_gives_another_answer(answering: EngineUnderTest) -> None:
    one, other = [await answer(answering, asked(seed=seed, max_tokens=20)) for seed in (1, 2)]
    assert ids_of(one) != ids_of(other)


async def test_closing_unread_aborts_once(opened: Opener) -> None:
    under_test = await opened([asyncio.Event()], steps(*HELLO))
    stream = await under_test.engine.submit(asked("left", max_tokens=LONG, ignore_eos=True))
    await stream.aclose()
    await stream.aclose()
    await eventually(lambda: under_test.aborts == 1)
    await answer(under_test, asked("next"))  # what was sent before it has arrived by now
    assert under_test.aborts == 1
    assert await all_of(stream) == []


async def test_closing_midway_aborts_once(opened: Opener) -> None:
    under_test = await opened([TokenDelta([104]), asyncio.Event()], steps(*HELLO))
    stream = await under_test.engine.submit(asked("left", max_tokens=LONG, ignore_eos=True))
    await anext(stream)
    await stream.aclose()
    await eventually(lambda: under_test.aborts == 1)
    await answer(under_test, asked("next"))
    assert under_test.aborts == 1
    assert await all_of(stream) == []


async def test_closing_ends_the_wait_of_a_reader(silent: EngineUnderTest) -> None:
    stream = await silent.engine.submit(asked())
    reader = asyncio.create_task(all_of(stream))
    await asyncio.sleep(0)
    await stream.aclose()
    assert await reader == []
    await eventually(lambda: silent.aborts == 1)


async def test_closing_after_the_end_aborts_nothing(answering: EngineUnderTest) -> None:
    for _ in range(2):
        stream = await answering.engine.submit(asked())
        await all_of(stream)
        await stream.aclose()
    assert answering.aborts == 0


async def test_a_reader_that_gives_up_loses_nothing(opened: Opener) -> None:
    gate = asyncio.Event()
    under_test = await opened([gate, *steps(*HELLO)], step_seconds=0.02)
    stream = await under_test.engine.submit(asked())
    impatient = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    gate.set()
    assert impatient.cancelled()
    assert ids_of(await all_of(stream)) == ids_of(await answer(under_test, asked()))
    await stream.aclose()
    assert under_test.aborts == 0


@pytest.mark.parametrize("tokens_per_step", [1, 3])
@pytest.mark.parametrize("step_seconds", [0, 0.001])
async def test_one_taken_at_each_call_is_all(opened: Opener, tokens_per_step: int, step_seconds: float) -> None:
    gate = asyncio.Event()
    script = steps(*HELLO, tokens_per_step=tokens_per_step)
    under_test = await opened(
        [script[0], gate, *script[1:]], tokens_per_step=tokens_per_step, step_seconds=step_seconds
    )
    stream = await under_test.engine.submit(asked())
    reader = OneAtACall(stream)
    gate.set()
    deltas = await reader.ended()
    assert len(ids_of(deltas)) == 5
    assert deltas[-1].finish_reason is FinishReason.LENGTH
    await stream.aclose()
    assert under_test.aborts == 0


async def test_a_reader_that_was_away_is_told_when_there_is_something_and_finds_all(opened: Opener) -> None:
    gate = asyncio.Event()
    under_test = await opened([gate, *steps(*HELLO)])
    stream = await under_test.engine.submit(asked())
    reader = OneAtACall(stream)
    reader.leave()
    gate.set()
    async with asyncio.timeout(PATIENCE_S):
        await reader.missed.wait()
    reader.come_back()
    assert len(ids_of(await reader.ended())) == 5
    await stream.aclose()


async def test_whoever_listens_is_told_that_it_was_closed(silent: EngineUnderTest) -> None:
    stream = await silent.engine.submit(asked())
    reader = OneAtACall(stream)
    await stream.aclose()
    assert reader.has_ended


async def test_whoever_listens_is_told_that_the_engine_was_closed(silent: EngineUnderTest) -> None:
    stream = await silent.engine.submit(asked())
    reader = OneAtACall(stream)
    await silent.engine.aclose()
    with pytest.raises(EngineFailure):
        await reader.ended()
    await stream.aclose()


async def test_one_request_id_may_be_used_twice_at_a_time(opened: Opener) -> None:
    under_test = await opened([asyncio.Event()], steps(*HELLO))
    left = await under_test.engine.submit(asked("same", max_tokens=LONG, ignore_eos=True))
    stays = await under_test.engine.submit(asked("same"))
    await left.aclose()
    deltas = await all_of(stays)
    assert len(ids_of(deltas)) == 5
    assert deltas[-1].finish_reason is FinishReason.LENGTH
    await stays.aclose()
    await eventually(lambda: under_test.aborts == 1)


async def test_closing_the_engine_fails_what_runs(silent: EngineUnderTest) -> None:
    waited_for, unread = [await silent.engine.submit(asked(name)) for name in ("waited-for", "unread")]
    reader = asyncio.create_task(all_of(waited_for))
    await asyncio.sleep(0)
    await silent.engine.aclose()
    with pytest.raises(EngineFailure):
        await reader
    with pytest.raises(EngineFailure):
        await all_of(unread)
    for stream in (waited_for, unread):
        await stream.aclose()


async def test_a_closed_engine_takes_nothing(answering: EngineUnderTest) -> None:
    await answering.engine.aclose()
    await answering.engine.aclose()
    with pytest.raises(EngineFailure):
        await answering.engine.submit(asked())


async def test_a_rank_that_no_engine_has_is_refused(answering: EngineUnderTest) -> None:
    for rank in (-1, 1):
        with pytest.raises(NoSuchEngine) as refused:
            await answering.engine.submit(replace(asked(), data_parallel_rank=rank))
        assert refused.value.param == "data_parallel_rank"
    stream = await answering.engine.submit(replace(asked(), data_parallel_rank=0))
    await stream.aclose()


@generating
async def test_times_are_told_in_their_order(answering: EngineUnderTest) -> None:
    stream = await answering.engine.submit(asked())
    deltas = [delta async for delta in stream]
    start = deltas[0].start
    assert start is not None
    told = [start.queued_at, start.scheduled_at, start.first_output_at, deltas[0].produced_at, deltas[-1].produced_at]
    known = [time for time in told if time is not None]
    assert len(known) == len(told)
    assert known == sorted(known)
    assert all(delta.start is None for delta in deltas[1:])
