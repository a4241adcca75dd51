"""Scores of one token, read by their form.

From step to step all of them but the numbers is the same bytes: element types, shapes, lengths. So the first of each
form are decoded, and where those that follow differ in nothing else, their numbers are unpacked in one call.

Here that is done in Python. Where a C compiler was there, `_row_reading.c` reads the same with no form to be learned.
"""

import struct
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from msgspec import DecodeError, Raw
from msgspec.msgpack import Ext

from adapters.outbound.vllm_engine.tensors import FORMATS, MalformedTensor, columns
from adapters.outbound.vllm_engine.wire import NULL, LogprobRows, decode, encode
from domain.logprobs import LogprobColumns


class ReadRow(Protocol):
    """One way to do it."""

    def __call__(self, rows: Raw | LogprobRows | None, alternatives: int, /) -> LogprobColumns | None:
        """What `any_rows` makes of the scores of one token, if they are not decoded and their numbers are all in place.

        None where that is otherwise or cannot be told, be it that they are malformed."""


class _Form(NamedTuple):
    """One row, as it is sent and as it was asked for."""

    parts: struct.Struct
    """The numbers, and what stands between them: before the ids, the logprobs and the rank, and at the end."""
    between_of: Callable[[Sequence[Any]], Sequence[bytes]]
    between: Sequence[bytes]
    columns_of: Callable[[Sequence[Any]], tuple[Sequence[int], Sequence[float], Sequence[int]]]
    width: int


_FORMS: dict[tuple[int, int], _Form] = {}
"""By the length of the whole and the alternatives asked for, of which there are few: tensors of more than some bytes
travel elsewhere."""


def read_row(rows: Raw | LogprobRows | None, alternatives: int, /) -> LogprobColumns | None:
    if not isinstance(rows, Raw):
        return None
    form = _FORMS.get((len(rows), alternatives))
    if form is not None:
        parts = form.parts.unpack(rows)
        if form.between_of(parts) == form.between:
            token_ids, logprobs, ranks = form.columns_of(parts)
            return LogprobColumns(form.width, token_ids, logprobs, ranks)
    try:
        decoded = decode(rows, LogprobRows)
        read = columns(decoded, (), alternatives, 1)
    except (DecodeError, MalformedTensor):
        return None
    _learn(rows, decoded, alternatives, read.width)
    return read


def any_rows(
    rows: Raw | LogprobRows | None, frames: Sequence[bytes], alternatives: int, tokens: int
) -> LogprobColumns | None:
    """What `columns` makes of the scores of so many tokens, decoded or not; None where there are none.

    Raises MalformedTensor, msgspec.DecodeError."""
    if rows is None or (isinstance(rows, Raw) and bytes(rows) == NULL):
        return None
    decoded = decode(rows, LogprobRows) if isinstance(rows, Raw) else rows
    return columns(decoded, frames, alternatives, tokens)


def _learn(rows: Raw, decoded: LogprobRows, alternatives: int, asked: int) -> None:
    """Keep the form of what could be read, if it is of one row, has all of its numbers in place, and is written as
    anyone would."""
    tensors = (decoded.token_ids, decoded.logprobs, decoded.ranks)
    contents = [bytes(tensor.buffer.data) for tensor in tensors if isinstance(tensor.buffer, Ext)]
    available, width = decoded.token_ids.shape
    if available != 1 or len(contents) < len(tensors) or encode(decoded) != bytes(rows):
        return
    layout, position = "<", 0
    end = 1  # behind what says that it is an array
    for tensor, content, count in zip(tensors, contents, (width, width, 1), strict=True):
        end += len(encode(tensor))
        layout += f"{end - len(content) - position}s{count}{FORMATS[tensor.dtype]}"
        position = end
    parts = struct.Struct(f"{layout}{len(rows) - position}s")
    ids, logprobs, rank = 1, width + 2, 2 * width + 3
    between_of = itemgetter(0, logprobs - 1, rank - 1, -1)
    columns_of = itemgetter(slice(ids, ids + asked), slice(logprobs, logprobs + asked), slice(rank, rank + 1))
    _FORMS[len(rows), alternatives] = _Form(parts, between_of, between_of(parts.unpack(rows)), columns_of, asked)


def quickest() -> ReadRow:
    """What could be compiled, else what is here."""
    try:
        from adapters.outbound.vllm_engine import _row_reading
    except ImportError:
        return read_row
    return _row_reading.read_row
