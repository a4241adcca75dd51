"""Logprob values: columns per engine step, never an object per token."""

from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from domain.errors import RequestError

WHOLE_VOCABULARY = -1
"""As a number of alternatives: every token there is."""

LOWEST_LOGPROB = -9999.0
"""What is shown for anything lower, for minus infinity and for NaN. Same as vLLM, which lets NaN through."""


class LogprobColumns(Struct, frozen=True, gc=False):
    """Scores of consecutive positions, row-major: position i owns [i * width, (i + 1) * width).

    Each row is the token at that position first, then alternatives by rank. The token at the position may appear
    again among them; whoever reads a row takes the first occurrence of an id.
    """

    width: int
    token_ids: Sequence[int]
    logprobs: Sequence[float]
    ranks: Sequence[int]
    """1-based vocabulary rank of the token at each position, one a row; 0 where the engine gave none."""

    @property
    def rows(self) -> int:
        return len(self.ranks)

    def first(self, rows: int) -> "LogprobColumns":
        """The same columns with only the first `rows` positions."""
        return self if rows == len(self.ranks) else self.between(0, rows)

    def between(self, start: int, end: int) -> "LogprobColumns":
        """The same columns with only the positions from `start` to before `end`."""
        cells = slice(start * self.width, end * self.width)
        return LogprobColumns(self.width, self.token_ids[cells], self.logprobs[cells], self.ranks[start:end])


def joined_columns(parts: Sequence[LogprobColumns]) -> LogprobColumns:
    """Rows of one width, one part after the other."""
    return LogprobColumns(
        parts[0].width,
        list(chain.from_iterable(part.token_ids for part in parts)),
        list(chain.from_iterable(part.logprobs for part in parts)),
        list(chain.from_iterable(part.ranks for part in parts)),
    )


def placeholder(token_id: int) -> str:
    """How a token is shown where token ids are asked for instead of texts."""
    return f"token_id:{token_id}"


def clamp(logprobs: Sequence[float]) -> list[float]:
    """Finite values for JSON: whatever is not above the lowest logprob becomes it, as do infinities and NaN."""
    return [value if LOWEST_LOGPROB < value < float("inf") else LOWEST_LOGPROB for value in logprobs]


def repeats(row: Sequence[int]) -> Sequence[int]:
    """Columns of ids in `row` that stand further left already, from right to left."""
    count = len(row) - len(set(row))
    if not count:
        return ()
    if count == 1 and row[0] in (rest := row[1:]):  # the token at the position, which mostly is a likely one, too
        return (rest.index(row[0]) + 1,)
    first: dict[int, int] = {}
    columns = enumerate(row)
    return [column for column, token_id in columns if first.setdefault(token_id, column) != column][::-1]


def distinct(row: Sequence[int]) -> Sequence[int]:
    """Columns of the ids in `row` in order, each id once: its first occurrence."""
    repeated = set(repeats(row))
    return [column for column in range(len(row)) if column not in repeated] if repeated else range(len(row))


class LogprobsNotAllowed(RequestError):
    """More alternatives were asked for than this server gives."""


def check_alternatives(param: str, requested: int | None, cap: int, vocab_size: int) -> None:
    """Refuse a number of alternatives above `cap` (-1: the vocabulary), named by the request field `param`."""
    if requested is None:
        return
    if requested == WHOLE_VOCABULARY:
        if cap != WHOLE_VOCABULARY:
            raise LogprobsNotAllowed(
                f"{param} of -1 asks for the whole vocabulary, but the maximum allowed here is {cap}.", param
            )
    elif requested < 0:
        raise LogprobsNotAllowed(f"{param} must be non-negative or -1, got {requested}; at most {cap}.", param)
    elif requested > (allowed := vocab_size if cap == WHOLE_VOCABULARY else cap):
        raise LogprobsNotAllowed(f"{param} of {requested} is greater than the maximum allowed, {allowed}.", param)
