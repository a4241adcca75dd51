"""What ends an answer: the model's own tokens, the request's, its strings; and what the engine hears of it."""

from collections.abc import Callable

import pytest

from adapters.outbound.mock_engine.scripted import steps
from application.model import ModelDefaults
from domain.generation import FinishReason, TokenDelta
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams
from tests.application.serving import EOS, Asked, chat, completion, read, serve

DEFAULTS = ModelDefaults(eos_token_id=EOS, stop_token_ids=[7, 8])


@pytest.mark.parametrize(
    ("sampling", "stop_token_ids", "ignored"),
    [
        (SamplingParams(), [7, 8], []),
        (SamplingParams(stop_token_ids=[9, 8]), [9, 8, 7], []),
        (SamplingParams(stop_token_ids=[9, 8], ignore_eos=True), [9, 8], [7, 8]),
        (SamplingParams(ignore_eos=True), [], [7, 8]),
    ],
)
@pytest.mark.parametrize("ask", [chat, completion])
async def test_the_models_stop_tokens_join_the_requests_unless_it_ignores_them(
    sampling: SamplingParams, stop_token_ids: list[int], ignored: list[int], ask: Callable[..., Asked]
) -> None:
    served = serve(steps(104), defaults=DEFAULTS)

    await read(await served(ask(sampling=sampling)))

    submitted = served.engine.submitted[0].sampling
    assert list(submitted.stop_token_ids) == stop_token_ids
    assert list(submitted.ignored_stop_token_ids) == ignored
    assert submitted.eos_token_id == EOS
    assert submitted.ignore_eos is sampling.ignore_eos


async def test_everything_else_of_the_sampling_reaches_the_engine_as_it_is() -> None:
    sampling = SamplingParams(
        max_tokens=5, min_tokens=2, temperature=0.25, top_p=0.5, top_k=3, min_p=0.125, seed=11, logprobs=2
    )
    served = serve(steps(104), defaults=ModelDefaults())

    await read(await served(completion(sampling=sampling)))

    assert served.engine.submitted[0].sampling == SamplingParams(
        max_tokens=5,
        min_tokens=2,
        temperature=0.25,
        top_p=0.5,
        top_k=3,
        min_p=0.125,
        seed=11,
        logprobs=2,
        stop_token_ids=[],
    )


async def test_the_end_of_the_answer_is_counted_and_not_shown() -> None:
    served = serve(steps(104, EOS, finish_reason=FinishReason.STOP))

    generation = await served(completion(sampling=SamplingParams(logprobs=0)))
    deltas = await read(generation)

    assert "".join(delta.text for delta in deltas) == "h"
    assert [text for delta in deltas if delta.scored for text in delta.scored.texts] == ["h", "<|eos|>"]
    assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == (FinishReason.STOP, None)
    assert generation.usage.completion_tokens == 2
    assert served.engine.aborted == []
    assert served.metrics.reasons == ["stop"]


class TestStopString:
    async def test_the_engine_is_stopped_once(self) -> None:
        served = serve(steps(*b"count: 3 4 5 6 7"))

        generation = await served(completion(stop=["4"]))
        deltas = await read(generation)
        await generation.aclose()

        assert "".join(delta.text for delta in deltas) == "count: 3 "
        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == (FinishReason.STOP, "4")
        assert served.engine.aborted == ["r-0"]
        assert served.metrics.reasons == ["stop"]
        assert served.is_idle

    async def test_the_engine_is_stopped_at_once_however_long_the_reader_takes_to_close(self) -> None:
        served = serve(steps(*b"1 2 3"))

        generation = await served(completion(stop=["2"]))
        while (await anext(generation)).finish_reason is None:
            pass

        assert served.engine.aborted == ["r-0"]
        assert served.is_idle

    async def test_nothing_comes_behind_it(self) -> None:
        generation = await serve(steps(*b"1 2 3"))(completion(stop=["2"]))
        await read(generation)

        with pytest.raises(StopAsyncIteration):
            await anext(generation)

    async def test_one_in_the_very_first_output_ends_it_too(self) -> None:
        served = serve(steps(*b"1 2 3 4", tokens_per_step=4))

        deltas = await read(await served(chat(stop=["2"])))

        assert [(delta.text, bytes(delta.token_ids)) for delta in deltas] == [("1 ", b"1 2")]
        assert served.engine.aborted == ["r"]

    async def test_tokens_behind_it_are_in_neither_ids_rows_nor_usage(self) -> None:
        served = serve(steps(*b"1 2 3 4", tokens_per_step=7))

        generation = await served(completion(sampling=SamplingParams(logprobs=0), stop=["2"]))
        [delta] = await read(generation)

        assert delta.scored is not None
        assert delta.scored.columns == LogprobColumns(1, [*b"1 2"], [-0.125] * 3, [1, 1, 1])
        assert generation.usage.completion_tokens == 3
        assert served.metrics.ended[0][1].completion_tokens == 3

    async def test_tokens_up_to_the_minimum_do_not_end_it(self) -> None:
        served = serve(steps(*b"4 4 4"))

        deltas = await read(await served(completion(sampling=SamplingParams(min_tokens=3), stop=["4"])))

        assert "".join(delta.text for delta in deltas) == "4 4 "

    async def test_an_engine_that_ended_in_that_step_is_not_aborted(self) -> None:
        served = serve(steps(*b"1 2", tokens_per_step=3))

        deltas = await read(await served(completion(stop=["2"])))

        assert deltas[-1].stop_reason == "2"
        assert served.engine.aborted == []

    async def test_what_is_held_at_the_end_is_shown(self) -> None:
        served = serve([TokenDelta([*b"UVW"]), TokenDelta([], finish_reason=FinishReason.ABORT)])

        deltas = await read(await served(completion(stop=["UVWXYZ"])))

        assert [delta.text for delta in deltas] == ["", "UVW"]
        assert served.metrics.reasons == ["abort"]


async def test_special_tokens_are_hidden_unless_asked_for() -> None:
    script = steps(104, 258, 33)

    hidden, shown = [await read(await serve(script)(completion(skip_special_tokens=skips))) for skips in (True, False)]

    assert "".join(delta.text for delta in hidden) == "h!"
    assert "".join(delta.text for delta in shown) == "h<|user|>!"
