"""What the engine generates, against llama.cpp alone, and how it shares itself among requests."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from adapters.outbound.llamacpp_engine.context import DecodingContext, Entry
from adapters.outbound.llamacpp_engine.engine import LlamaCppEngine, open_llamacpp
from adapters.outbound.llamacpp_engine.model import GgufModel
from adapters.outbound.llamacpp_engine.scheduler import WORTH_COPYING
from adapters.outbound.llamacpp_engine.tokenizer import GgufTokenizer
from application.ports.engine import EngineDead
from domain.generation import FinishReason
from tests.contract.engines import eventually
from tests.llamacpp.asking import Bare, answer, asked, ids_of, rows_of, tokens

PROMPTS = [
    *["The capital of France is", "Once upon a time", "def fibonacci(n):", "Water boils at", "The quick brown fox"],
    *["In 1969,", "My favourite colour is", "SELECT * FROM", "Dear Sir or Madam,", "The meaning of life is"],
    *["import numpy as np", "Roses are red,", "A recipe for pancakes:", "The largest planet is", "Q: What is 2+2?\nA:"],
    *[
        "Bonjour, je m'appelle",
        "The president of the",
        "In conclusion,",
        "It was a dark and stormy night",
        "1, 2, 3, 4,",
    ],
]


@pytest.fixture
def bare(model: GgufModel) -> Iterator[Bare]:
    alone = Bare(model)
    yield alone
    alone.close()


@pytest.fixture
def prompts(tokenizer: GgufTokenizer) -> list[list[int]]:
    return [tokenizer.encode(prompt, add_special_tokens=True) for prompt in PROMPTS]


async def test_greedy_tokens_are_llama_cpps_own_whatever_runs_beside_them(
    engine: LlamaCppEngine, bare: Bare, prompts: list[list[int]]
) -> None:
    expected = [bare.greedy(prompt, 32) for prompt in prompts]
    together = await asyncio.gather(*(tokens(engine, prompt, max_tokens=32) for prompt in prompts))
    assert list(together) == expected


async def test_scores_are_the_softmax_of_the_whole_vocabulary(
    engine: LlamaCppEngine, bare: Bare, prompts: list[list[int]]
) -> None:
    prompt = prompts[0]
    first, *others = deltas = await answer(engine, asked(prompt, logprobs=5, prompt_logprobs=3, max_tokens=6))
    everything = prompt + ids_of(deltas)
    exact = bare.logprobs(everything)
    assert first.prompt_logprobs is not None
    assert all(delta.prompt_logprobs is None for delta in others)
    rows = [(first.prompt_logprobs, index, position) for index, position in enumerate(range(1, len(prompt)))]
    rows += [(columns, 0, len(prompt) + index) for index, columns in enumerate(rows_of(deltas))]
    assert len(rows) == len(everything) - 1
    for columns, index, position in rows:
        start = index * columns.width
        ids = list(columns.token_ids[start : start + columns.width])
        values = columns.logprobs[start : start + columns.width]
        expected = exact[position - 1]
        assert ids[0] == everything[position]
        assert ids[1:] == sorted(range(len(expected)), key=lambda token_id: -expected[token_id])[: len(ids) - 1]
        assert values == pytest.approx([expected[token_id] for token_id in ids], abs=1e-5)
        assert columns.ranks[index] == sum(value >= expected[ids[0]] for value in expected)


async def test_streams_outnumber_slots(engine: LlamaCppEngine, prompts: list[list[int]]) -> None:
    alone = [await tokens(engine, prompt, seed=1, temperature=1, max_tokens=12) for prompt in prompts[:8]]
    together = await asyncio.gather(
        *(tokens(engine, prompt, seed=1, temperature=1, max_tokens=12) for prompt in prompts[:8] * 4)
    )
    assert together == alone * 4


async def test_whoever_leaves_frees_a_slot_at_once(engine: LlamaCppEngine, prompts: list[list[int]]) -> None:
    endless = {"max_tokens": 450, "ignore_eos": True}
    streams = [await engine.submit(asked(prompt, **endless)) for prompt in prompts[:8]]
    running, waiting = streams[:4], streams[4:]
    for stream in running:
        await anext(stream)
    for stream in running:
        await stream.aclose()
    for stream in waiting:
        first = await anext(stream)
        assert first.finish_reason is None
        await stream.aclose()
    assert engine.aborts == 8
    assert await tokens(engine, prompts[0], max_tokens=1)


async def test_prompts_are_computed_in_parts_beside_others(
    engine: LlamaCppEngine, bare: Bare, tokenizer: GgufTokenizer, prompts: list[list[int]]
) -> None:
    long = tokenizer.encode("The cat sat on the mat, and the dog did not. " * 30, add_special_tokens=False)[:200]
    short, answered = await asyncio.gather(
        tokens(engine, prompts[0], max_tokens=32), answer(engine, asked(long, max_tokens=8, prompt_logprobs=0))
    )
    assert short == bare.greedy(prompts[0], 32)
    assert ids_of(answered) == bare.greedy(long, 8)
    scored = answered[0].prompt_logprobs
    assert scored is not None
    assert list(scored.token_ids) == long[1:]
    exact = bare.logprobs(long)
    assert scored.logprobs == pytest.approx(
        [row[token_id] for row, token_id in zip(exact[:-1], long[1:], strict=True)], abs=1e-5
    )


async def cached(engine: LlamaCppEngine, prompt: list[int], salt: str | None = None) -> int | None:
    first, *_ = await answer(engine, asked(prompt, cache_salt=salt, max_tokens=1))
    return first.cached_tokens


async def test_what_was_computed_is_not_computed_again(engine: LlamaCppEngine, bare: Bare) -> None:
    prompt = list(range(100, 120))
    assert await cached(engine, prompt) == 0
    assert await cached(engine, prompt) == len(prompt) - 1
    longer = [*prompt[:15], 7, 8, 9]
    assert await cached(engine, longer) == 15
    assert await tokens(engine, longer, max_tokens=8) == bare.greedy(longer, 8)


async def test_salted_prompts_share_nothing(engine: LlamaCppEngine) -> None:
    prompt = list(range(100, 120))
    assert await cached(engine, prompt, "a") == 0
    assert await cached(engine, prompt, "b") == 0
    assert await cached(engine, prompt) == 0
    assert await cached(engine, prompt, "a") == len(prompt) - 1


async def test_choices_of_one_prompt_compute_it_once(engine: LlamaCppEngine, tokenizer: GgufTokenizer) -> None:
    prompt = tokenizer.encode("The cat sat on the mat, and the dog did not. " * 30, add_special_tokens=False)[:300]
    assert len(prompt) > WORTH_COPYING
    requests = [asked(prompt, temperature=1, seed=seed, max_tokens=4) for seed in range(3)]
    first, *others = await asyncio.gather(*(answer(engine, request) for request in requests))
    assert first[0].cached_tokens == 0
    assert [deltas[0].cached_tokens for deltas in others] == [len(prompt) - 1] * 2
    again = await answer(engine, requests[2])
    assert ids_of(again) == ids_of(others[1])


async def test_scored_prompts_are_computed_whole(engine: LlamaCppEngine) -> None:
    prompt = list(range(100, 120))
    await cached(engine, prompt)
    first, *_ = await answer(engine, asked(prompt, prompt_logprobs=0))
    assert first.cached_tokens == 0
    assert first.prompt_logprobs is not None
    assert first.prompt_logprobs.rows == len(prompt) - 1


async def test_lower_priorities_are_served_first(model: GgufModel) -> None:
    order: list[int] = []

    async def note(engine: LlamaCppEngine, priority: int) -> None:
        await answer(engine, asked([1, 2, 3], priority=priority, max_tokens=2, ignore_eos=True))
        order.append(priority)

    async with open_llamacpp(model, max_model_len=256, max_num_seqs=1) as engine:
        busy = await engine.submit(asked([5], max_tokens=200, ignore_eos=True))
        await anext(busy)
        others = [asyncio.create_task(note(engine, priority)) for priority in (3, 1, 2)]
        await asyncio.sleep(0)
        await busy.aclose()
        await asyncio.gather(*others)
    assert order == [1, 2, 3]


async def test_an_answer_ends_where_the_context_does(model: GgufModel) -> None:
    async with open_llamacpp(model, max_model_len=20, max_num_seqs=1) as engine:
        deltas = await answer(engine, asked(range(100, 115), max_tokens=100, ignore_eos=True))
    assert len(ids_of(deltas)) == 5
    assert deltas[-1].finish_reason is FinishReason.LENGTH


class Failing(DecodingContext):
    """As when memory runs out, in a step that is not the first."""

    steps = 0

    def decode(self, entries: Sequence[Entry]) -> None:
        self.steps += 1
        if self.steps > 3:
            raise RuntimeError("llama_decode failed")
        super().decode(entries)


async def test_when_llama_cpp_fails_everyone_hears(model: GgufModel, prompts: list[list[int]]) -> None:
    context = Failing(model, sequences=1, length=256, batch_tokens=64, threads=2)
    engine = LlamaCppEngine(model, context, max_model_len=256, max_num_seqs=1)
    running, waiting = [await engine.submit(asked(prompt, ignore_eos=True)) for prompt in prompts[:2]]
    for stream in (running, waiting):
        with pytest.raises(EngineDead, match="llama_decode failed"):
            async for _ in stream:
                pass
    assert engine.died.is_set()
    assert not engine.is_alive
    with pytest.raises(EngineDead):
        await engine.submit(asked(prompts[0]))
    await engine.aclose()


async def test_closing_lets_go_of_a_running_step(model: GgufModel, prompts: list[list[int]]) -> None:
    async with open_llamacpp(model, max_model_len=256) as engine:
        stream = await engine.submit(asked(prompts[0], max_tokens=100))
        await anext(stream)
        await stream.aclose()
        await eventually(lambda: engine.aborts == 1)
    assert not engine.is_alive
