"""Formats of tokens filled in with their numbers: rows of scores as JSON.

Here it is in Python. Where a C compiler was there, `_filling.c` does the same with no object per score.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol, TypeVar

from adapters.inbound.http.openai.encoding import encode_numbers
from domain.logprobs import repeats

Format = bytes
"""JSON with `%b` where a number goes, and `%%` for a percent sign."""


T = TypeVar("T")

AroundId = tuple[bytes, Format]
"""What stands before an id and behind it."""


class FillRows(Protocol):
    """One way to do it."""

    def __call__(
        self,
        token_ids: Sequence[int],
        logprobs: Sequence[float],
        ranks: Sequence[int] | None,
        width: int,
        shown: int,
        most: int,
        heads: Sequence[Format] | None,
        firsts: Sequence[Format],
        kept: list[Format | None],
        make: Callable[[int], Format] | AroundId,
        opening: bytes,
        closing: bytes,
        keys_once: bool,
        /,
    ) -> tuple[bytes, bytes]:
        """The rows with a comma between them, and the first number of each, likewise.

        There is a row for each of `firsts`: the next `width` of `token_ids` and of `logprobs`, of which the first
        `shown`, or all, are looked at. A logprob that has no JSON, or is too low, is clamped. Each id counts once,
        where it stands first; so does each format, if `keys_once`. At most `most` entries are written, between
        `opening` with what there is of `heads`, which has the row's first number, and `closing`. The format of the
        first entry is that of `firsts`; of any other it is at the id's place in `kept`, or what `make` gives, which
        may keep it there, or the id between what `make` is.

        With `ranks`, formats have a second place, for the rank: of the first entry what is given for its row (0: null),
        of others the column."""


def fill_rows(
    token_ids: Sequence[int],
    logprobs: Sequence[float],
    ranks: Sequence[int] | None,
    width: int,
    shown: int,
    most: int,
    heads: Sequence[Format] | None,
    firsts: Sequence[Format],
    kept: list[Format | None],
    make: Callable[[int], Format] | AroundId,
    opening: bytes,
    closing: bytes,
    keys_once: bool,
    /,
) -> tuple[bytes, bytes]:
    values = encode_numbers(logprobs)
    rows = []
    for index, first in enumerate(firsts):
        start = index * width
        head = opening if heads is None else opening + heads[index] % values[start]
        if not most:
            rows.append(head + closing)
            continue
        end = start + min(shown, width)
        row: Sequence[int] = token_ids[start:end]
        fields: list[Any] = values[start:end]
        if ranks is not None:
            rank = b"%d" % ranks[index] if ranks[index] else b"null"
            fields = list(zip(fields, [rank, *_columns(len(row))[1:]], strict=True))
        if repeated := repeats(row):
            row = list(row)
            for column in repeated:
                del row[column], fields[column]
        forms = [first, *_forms(row[1:most], kept, make)]
        if keys_once and len(set(forms)) < len(forms):
            forms, fields = _each_form_once(forms, fields[:most])
        numbers = fields[:most] if ranks is None else chain.from_iterable(fields[:most])
        rows.append(head + b",".join(forms) % (*numbers,) + closing)
    return b",".join(rows), b",".join(values[: width * len(firsts) : width])


@lru_cache(maxsize=64)
def _columns(count: int) -> Sequence[bytes]:
    return [b"%d" % column for column in range(count)]


def _forms(
    token_ids: Sequence[int], kept: list[Format | None], make: Callable[[int], Format] | AroundId
) -> list[Format]:
    if isinstance(make, tuple):
        before, after = make
        return list(map((before + b"%d" + after.replace(b"%", b"%%")).__mod__, token_ids))
    try:
        found = list(map(kept.__getitem__, token_ids))
    except IndexError:
        pass
    else:
        if None not in found and min(token_ids, default=0) >= 0:
            return found  # type: ignore[return-value]  # none of them is None
    return [(kept[token_id] if 0 <= token_id < len(kept) else None) or make(token_id) for token_id in token_ids]


def _each_form_once(forms: Sequence[Format], fields: Sequence[T]) -> tuple[list[Format], list[T]]:
    first: dict[Format, T] = {}
    for form, field in zip(forms, fields, strict=True):
        first.setdefault(form, field)
    return list(first), list(first.values())


def quickest() -> FillRows:
    """What could be compiled, else what is here."""
    try:
        from adapters.inbound.http.openai import _filling
    except ImportError:
        return fill_rows
    return _filling.fill_rows
