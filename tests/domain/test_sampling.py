"""The ranges in which sampling is defined."""

import math
from typing import Any

import pytest

from domain.sampling import OutOfRange, SamplingParams


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"temperature": 0.0},
        {"temperature": 2.0},
        {"top_p": 1e-9},
        {"top_p": 1.0},
        {"top_k": -1},
        {"top_k": 0},
        {"top_k": 100_000},
        {"min_p": 0.0},
        {"min_p": 1.0},
        {"max_tokens": 1},
        {"max_tokens": None, "min_tokens": 5000},
        {"max_tokens": 7, "min_tokens": 7},
        {"logprobs": -1, "prompt_logprobs": 0},
        {"logprob_token_ids": [5]},
        {"logprob_token_ids": [5] * 128},
    ],
)
def test_what_is_in_range_is_kept(given: dict[str, Any]) -> None:
    params = SamplingParams(**given)

    assert {name: getattr(params, name) for name in given} == given


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"temperature": -0.01}, "temperature"),
        ({"temperature": 2.01}, "temperature"),
        ({"temperature": math.nan}, "temperature"),
        ({"temperature": math.inf}, "temperature"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.01}, "top_p"),
        ({"top_p": math.nan}, "top_p"),
        ({"top_k": -2}, "top_k"),
        ({"min_p": -0.1}, "min_p"),
        ({"min_p": 1.1}, "min_p"),
        ({"min_p": math.nan}, "min_p"),
        ({"frequency_penalty": 2.1}, "frequency_penalty"),
        ({"frequency_penalty": math.nan}, "frequency_penalty"),
        ({"presence_penalty": -2.1}, "presence_penalty"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"repetition_penalty": math.inf}, "repetition_penalty"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"min_tokens": -1}, "min_tokens"),
        ({"min_tokens": 8, "max_tokens": 7}, "min_tokens"),
        ({"logprob_token_ids": []}, "logprob_token_ids"),
        ({"logprob_token_ids": [5] * 129}, "logprob_token_ids"),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(given: dict[str, Any], param: str) -> None:
    with pytest.raises(OutOfRange) as refused:
        SamplingParams(**given)

    assert refused.value.param == param
    assert param in str(refused.value)


@pytest.mark.parametrize(("temperature", "greedy"), [(0.0, True), (1e-9, False), (1.0, False)])
def test_a_temperature_of_nothing_is_greedy(temperature: float, greedy: bool) -> None:
    assert SamplingParams(temperature=temperature).is_greedy is greedy


@pytest.mark.parametrize(
    ("logprobs", "token_ids", "alternatives"),
    [(None, None, None), (0, None, 0), (5, None, 5), (-1, None, -1), (5, [7], 1), (0, [7, 8, 7], 3), (-1, [7], 1)],
)
def test_chosen_ids_stand_in_place_of_the_likeliest(
    logprobs: int | None, token_ids: list[int] | None, alternatives: int | None
) -> None:
    """Contract 4.3: as many as are listed, whatever was asked for beside."""
    params = SamplingParams(logprobs=logprobs, logprob_token_ids=token_ids)

    assert params.alternatives == alternatives
