"""Scores of one token, read by their form.

From step to step all of them but the numbers is the same bytes: element types, shapes, lengths. So the first of each
form are decoded, and where those that follow differ in nothing else, their numbers are unpacked in one call.
"""

import struct
from collections.abc import Sequence

from msgspec import Raw, Struct
from msgspec.msgpack import Ext

from adapters.outbound.vllm_engine.tensors import FORMATS, columns
from adapters.outbound.vllm_engine.wire import NULL, LogprobRows, decode, encode
from domain.logprobs import WHOLE_VOCABULARY, LogprobColumns


class _Form(Struct, frozen=True, gc=False):
    """One row of `width` entries."""

    numbers: struct.Struct
    """And of what stands between them: before the ids, the logprobs and the rank, and at the end."""
    between: tuple[bytes, bytes, bytes, bytes]
    width: int


_FORMS: dict[int, _Form] = {}
"""By the length of the whole, of which there are few: tensors of more than some bytes travel elsewhere."""


def row_columns(
    rows: Raw | LogprobRows | None, frames: Sequence[bytes], alternatives: int, tokens: int
) -> LogprobColumns | None:
    """What `columns` makes of the scores of so many tokens, decoded or not; None where there are none.

    Raises MalformedTensor, msgspec.DecodeError."""
    if not isinstance(rows, Raw):
        return None if rows is None else columns(rows, frames, alternatives, tokens)
    form = _FORMS.get(len(rows)) if tokens == 1 else None
    if form is not None:
        full, found = form.width, form.numbers.unpack(rows)
        if (found[0], found[full + 1], found[2 * full + 2], found[-1]) == form.between:
            width = full if alternatives == WHOLE_VOCABULARY or alternatives >= full else alternatives + 1
            start = full + 2
            return LogprobColumns(width, found[1 : width + 1], found[start : start + width], found[-2:-1])
    if bytes(rows) == NULL:
        return None
    decoded = decode(rows, LogprobRows)
    read = columns(decoded, frames, alternatives, tokens)
    _learn(rows, decoded)
    return read


def _learn(rows: Raw, decoded: LogprobRows) -> None:
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
    numbers = struct.Struct(f"{layout}{len(rows) - position}s")
    found = numbers.unpack(rows)
    _FORMS[len(rows)] = _Form(numbers, (found[0], found[width + 1], found[2 * width + 2], found[-1]), width)
