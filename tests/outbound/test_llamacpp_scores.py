"""From logits to rows."""

import math

import numpy as np
import pytest

from adapters.outbound.llamacpp_engine.scores import columns, row, width


def logits(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(values, np.float32)


def test_scores_are_the_logarithm_of_the_softmax() -> None:
    values = [1.0, 3.0, 2.0, -1.0]
    total = math.log(sum(math.exp(value) for value in values))
    scored = row(logits(*values), 2, 3)
    assert scored.token_ids == [2, 1, 2, 0]
    assert scored.logprobs == pytest.approx([values[token_id] - total for token_id in scored.token_ids], abs=1e-6)
    assert scored.rank == 2


def test_a_large_vocabulary_loses_no_digits() -> None:
    values = np.random.default_rng(0).normal(0, 3, 200_000).astype(np.float32)
    exact = float(values[5]) - math.log(math.fsum(math.exp(value) for value in values.tolist()))
    assert row(values, 5, 0).logprobs == pytest.approx([exact], abs=1e-6)


def test_tokens_as_likely_count_as_before_it_and_stand_by_id() -> None:
    scored = row(logits(1, 5, 5, 5, 0), 2, 2)
    assert scored.token_ids == [2, 1, 2]
    assert scored.rank == 3


@pytest.mark.parametrize("alternatives", [-1, 4, 9])
def test_the_whole_vocabulary_is_in_order(alternatives: int) -> None:
    assert row(logits(1, 5, 5, 7), 0, alternatives).token_ids == [0, 3, 1, 2, 0]


def test_chosen_ids_stand_in_their_order() -> None:
    scored = row(logits(1, 5, 2), 1, 2, [2, 0, 2])
    assert scored.token_ids == [1, 2, 0, 2]


def test_what_is_ruled_out_has_no_likelihood() -> None:
    scored = row(logits(1, -math.inf, 1), 0, 2)
    assert scored.logprobs == pytest.approx([-math.log(2)] * 3)
    assert row(logits(1, -math.inf, 1), 0, -1).logprobs[-1] == -math.inf


def test_no_value_makes_it_fail() -> None:
    scored = row(logits(1, math.nan, 2), 0, 3)
    assert scored.token_ids == [0, 2, 0, 1]


def test_rows_join_to_columns() -> None:
    rows = [row(logits(1, 2, 3), token_id, 2) for token_id in (0, 2)]
    joined = columns(rows, width(2, 3))
    assert (joined.width, joined.rows) == (3, 2)
    assert joined.token_ids == [0, 2, 1, 2, 2, 1]
    assert joined.ranks == [3, 1]
    assert width(-1, 3) == 4
