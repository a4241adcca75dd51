"""From logits to rows of scores: logarithms of the softmax over the whole vocabulary."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from domain.logprobs import WHOLE_VOCABULARY, LogprobColumns


class Row(NamedTuple):
    """One scored position."""

    token_ids: list[int]
    """The token there first."""
    logprobs: list[float]
    rank: int


def row(logits: NDArray[np.float32], token_id: int, alternatives: int, scored_ids: Sequence[int] | None = None) -> Row:
    """The token there, then the most likely `alternatives` (-1: all), or `scored_ids` in their order."""
    others = _likeliest(logits, alternatives) if scored_ids is None else scored_ids
    token_ids = np.concatenate(([token_id], np.asarray(others, np.int64)))
    # in double precision: summed over a vocabulary, single precision would show in the fourth digit
    shifted = logits.astype(np.float64) - float(logits.max())
    logprobs = (shifted[token_ids] - np.log(np.exp(shifted).sum())).astype(np.float32)
    # Same as vLLM: tokens as likely as this one count as before it.
    rank = int(np.count_nonzero(logits >= logits[token_id]))
    return Row(token_ids.tolist(), logprobs.tolist(), rank)


def columns(rows: Sequence[Row], width: int) -> LogprobColumns:
    """Rows of one width, one behind the other."""
    return LogprobColumns(
        width,
        [token_id for row in rows for token_id in row.token_ids],
        [logprob for row in rows for logprob in row.logprobs],
        [row.rank for row in rows],
    )


def width(alternatives: int, vocab_size: int) -> int:
    """Entries of each row."""
    return 1 + (vocab_size if alternatives == WHOLE_VOCABULARY else alternatives)


def _likeliest(logits: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """The ids of the highest logits, in order; the lower id first where they are equal."""
    if count == WHOLE_VOCABULARY or count >= len(logits):
        return np.argsort(-logits, kind="stable")
    if count == 0:
        return np.empty(0, np.int64)
    lowest = np.partition(logits, -count)[-count]
    above = np.flatnonzero(logits > lowest)
    ordered = above[np.argsort(-logits[above], kind="stable")]
    ties = np.flatnonzero(logits == lowest)[: count - len(ordered)]
    likeliest = np.concatenate((ordered, ties))
    # NaN is equal to nothing
    return likeliest if len(likeliest) == count else np.argsort(-logits, kind="stable")[:count]
