"""The scorer behind the mock engines: a function of prompt and seed, with a whole distribution at each position."""

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from adapters.outbound.mock_engine.deterministic import CannotConstrain, DeterministicModel, Scorer
from domain.generation import FinishReason, GenerationRequest, TokenDelta
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams
from domain.structured_outputs import JsonObject, StructuredOutputs

BYTES = DeterministicModel(261, byte_vocabulary=True)
LARGE = DeterministicModel(49152)
EOS = 257

prompts = st.lists(st.integers(0, 255), min_size=1, max_size=40)
seeds = st.none() | st.integers(-(2**63), 2**63 - 1)
vocab_sizes = st.integers(1, 400)


def asked(prompt: Sequence[int], **sampling: object) -> GenerationRequest:
    params = SamplingParams(**{"eos_token_id": EOS, **sampling})
    return GenerationRequest(request_id="r", prompt_token_ids=prompt, sampling=params)


def answer(
    model: DeterministicModel, request: GenerationRequest, tokens_per_step: int = 1, alternatives: int | None = None
) -> list[TokenDelta]:
    generation = model.start(request)
    deltas = [generation.step(tokens_per_step, alternatives)]
    while deltas[-1].finish_reason is None:
        deltas.append(generation.step(tokens_per_step, alternatives))
    return deltas


def ids_of(deltas: Sequence[TokenDelta]) -> list[int]:
    return [token_id for delta in deltas for token_id in delta.token_ids]


def text_of(token_ids: Sequence[int]) -> str:
    return bytes(token_id for token_id in token_ids if token_id < 256).decode()


def row(columns: LogprobColumns, index: int) -> tuple[list[int], list[float]]:
    span = slice(index * columns.width, (index + 1) * columns.width)
    return list(columns.token_ids[span]), list(columns.logprobs[span])


@given(vocab_sizes, st.data())
def test_the_whole_vocabulary_is_one_normalised_distribution(vocab_size: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, min(8, vocab_size)))
    token_id = data.draw(st.integers(0, vocab_size - 1))
    columns = Scorer(vocab_size).columns([(token_id, rank, data.draw(st.integers(0, 2**56)))], -1)
    ids, logprobs = row(columns, 0)
    assert columns.width == vocab_size + 1
    assert sorted(ids[1:]) == list(range(vocab_size))
    assert math.fsum(map(math.exp, logprobs[1:])) == pytest.approx(1, abs=1e-5)
    assert all(better > worse for better, worse in pairwise(logprobs[1:]))


@given(vocab_sizes, st.data())
def test_a_token_stands_at_its_rank_among_distinct_alternatives(vocab_size: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, min(8, vocab_size)))
    token_id = data.draw(st.integers(0, vocab_size - 1))
    alternatives = data.draw(st.integers(0, vocab_size))
    columns = Scorer(vocab_size).columns([(token_id, rank, data.draw(st.integers(0, 2**56)))], alternatives)
    ids, logprobs = row(columns, 0)
    assert len(ids) == alternatives + 1
    assert len(set(ids[1:])) == alternatives
    assert columns.ranks == [rank]
    assert ids[0] == token_id
    assert [place for place, other in enumerate(ids) if place and other == token_id] == [rank] * (rank <= alternatives)
    if rank <= alternatives:
        assert logprobs[0] == logprobs[rank]
    else:
        assert all(logprobs[0] < other for other in logprobs[1:])


def test_few_alternatives_are_the_first_of_many() -> None:
    few = LARGE.start(asked([1, 2, 3])).step(5, 4).logprobs
    many = LARGE.start(asked([1, 2, 3])).step(5, -1).logprobs
    assert few is not None
    assert many is not None
    for index in range(5):
        assert row(few, index)[0] == row(many, index)[0][:5]
        assert row(few, index)[1] == row(many, index)[1][:5]


@given(prompts, seeds, st.sampled_from([0.0, 0.7, 2.0]), st.integers(1, 9))
def test_an_answer_is_a_function_of_prompt_and_seed_alone(
    prompt: list[int], seed: int | None, temperature: float, tokens_per_step: int
) -> None:
    request = asked(prompt, seed=seed)
    warmer = asked(prompt, seed=seed, temperature=temperature, top_p=0.5, top_k=3)
    expected = BYTES.start(request).step(1000, 3)
    actual = answer(BYTES, replace(warmer, request_id="other"), tokens_per_step, alternatives=3)
    assert ids_of(actual) == expected.token_ids
    scores = [delta.logprobs for delta in actual if delta.logprobs is not None]
    assert expected.logprobs is not None
    assert [value for columns in scores for value in columns.logprobs] == expected.logprobs.logprobs
    assert [value for columns in scores for value in columns.token_ids] == expected.logprobs.token_ids
    assert [value for columns in scores for value in columns.ranks] == expected.logprobs.ranks


def test_prompts_and_seeds_differ() -> None:
    answers = {
        tuple(ids_of(answer(BYTES, asked(prompt, seed=seed))))
        for prompt in ([1], [2], [1, 2], [2, 1], [258])
        for seed in (None, 0, 1, -1)
    }
    assert len(answers) == 20


@given(prompts, seeds)
def test_answers_are_words_with_an_end(prompt: list[int], seed: int | None) -> None:
    deltas = answer(BYTES, asked(prompt, seed=seed))
    token_ids = ids_of(deltas)
    assert 10 <= len(token_ids) <= 60
    assert token_ids[-1] == EOS
    assert deltas[-1].finish_reason is FinishReason.STOP
    assert deltas[-1].stop_reason is None
    text = text_of(token_ids)
    assert text[0].isascii()
    assert text[0].isalpha()
    assert text.endswith(".")


def test_some_words_have_characters_of_several_bytes() -> None:
    text = text_of(ids_of(answer(BYTES, asked([1], ignore_eos=True, max_tokens=4000)))[:-4])
    assert {len(character.encode()) for character in text} == {1, 2, 3, 4}


def test_ignore_eos_goes_on_to_max_tokens() -> None:
    deltas = answer(BYTES, asked([1], ignore_eos=True, max_tokens=200))
    assert len(ids_of(deltas)) == 200
    assert EOS not in ids_of(deltas)
    assert deltas[-1].finish_reason is FinishReason.LENGTH


def test_max_tokens_may_cut_a_step_short() -> None:
    deltas = answer(BYTES, asked([1], max_tokens=5), tokens_per_step=4, alternatives=1)
    assert [len(delta.token_ids) for delta in deltas] == [4, 1]
    assert [delta.logprobs.rows for delta in deltas if delta.logprobs is not None] == [4, 1]
    assert deltas[-1].finish_reason is FinishReason.LENGTH


def test_the_context_ends_an_answer_too() -> None:
    model = DeterministicModel(261, byte_vocabulary=True, max_model_len=20)
    assert len(ids_of(answer(model, asked([1] * 12, ignore_eos=True)))) == 8


@given(prompts, st.integers(0, 150))
def test_nothing_stops_before_min_tokens(prompt: list[int], min_tokens: int) -> None:
    deltas = answer(BYTES, asked(prompt, min_tokens=min_tokens, stop_token_ids=[ord("e")]))
    assert len(ids_of(deltas)) > min_tokens
    assert deltas[-1].finish_reason is FinishReason.STOP


def test_a_stop_token_is_named() -> None:
    whole = ids_of(answer(BYTES, asked([1])))
    deltas = answer(BYTES, asked([1], stop_token_ids=[whole[4], 300]))
    assert ids_of(deltas) == whole[: whole.index(whole[4]) + 1]
    assert deltas[-1].finish_reason is FinishReason.STOP
    assert deltas[-1].stop_reason == whole[4]


def test_sampled_tokens_are_inside_and_outside_of_few_alternatives() -> None:
    columns = LARGE.start(asked([1])).step(200, 2).logprobs
    assert columns is not None
    assert {rank > 2 for rank in columns.ranks} == {True, False}
    assert columns.ranks.count(1) > 100


def test_a_prompt_is_scored_from_its_second_token_with_the_first_output_only() -> None:
    prompt = [104, 105, 106, 107]
    first, *rest = answer(BYTES, asked(prompt, prompt_logprobs=2, max_tokens=5))
    scores = first.prompt_logprobs
    assert scores is not None
    assert scores.width == 3
    assert [row(scores, index)[0][0] for index in range(scores.rows)] == prompt[1:]
    assert first.logprobs is None
    assert all(delta.prompt_logprobs is None for delta in rest)


def test_a_prompt_of_one_token_has_no_scored_position() -> None:
    scores = BYTES.start(asked([104], prompt_logprobs=2)).step(1, None).prompt_logprobs
    assert scores is not None
    assert (scores.width, scores.rows) == (3, 0)


def test_other_vocabularies_are_used_all_over() -> None:
    token_ids = LARGE.start(asked([1], max_tokens=4000)).step(4000, None).token_ids
    assert max(token_ids) < 49152
    assert len({token_id * 16 // 49152 for token_id in token_ids}) == 16


def test_an_output_of_a_form_is_refused_by_the_field_that_asked_for_it() -> None:
    structured = StructuredOutputs(form=JsonObject(), param="response_format")
    with pytest.raises(CannotConstrain) as refused:
        BYTES.start(asked([1], structured_outputs=structured))
    assert refused.value.param == "response_format"
