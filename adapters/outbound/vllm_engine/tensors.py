"""Tensors of the wire as plain numbers, and back.

Read through memoryviews: rows are a few numbers each, for which NumPy costs more than it saves. Engine and frontend
are both little-endian, which is all that vLLM runs on.
"""

from array import array
from collections.abc import Sequence
from math import prod
from typing import Any, Literal

from msgspec.msgpack import Ext

from adapters.outbound.vllm_engine.wire import INLINE_BELOW, RAW_VIEW, LogprobRows, PromptLogprobRows, Tensor
from domain.logprobs import WHOLE_VOCABULARY, LogprobColumns

Format = Literal["h", "i", "q", "I", "Q", "f", "d"]

FORMATS: dict[str, Format] = {
    "<i2": "h",
    "<i4": "i",
    "<i8": "q",
    "<u4": "I",
    "<u8": "Q",
    "<f4": "f",
    "<f8": "d",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint32": "I",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
"""What NumPy and torch call an element type, and what `struct` calls it."""

SIZES = {code: array(code).itemsize for code in FORMATS.values()}
"""Bytes of one element."""


class MalformedTensor(ValueError):
    """A tensor that cannot be what it says it is."""


def numbers(tensor: Tensor, frames: Sequence[bytes]) -> "memoryview[Any]":
    """All elements of the tensor in row-major order; its buffer may be one of the message's frames.

    A float32 reads as the double of the same value. Raises MalformedTensor.
    """
    buffer, code = tensor.buffer, FORMATS.get(tensor.dtype)
    if code is None:
        raise MalformedTensor(f"element type {tensor.dtype!r} is not known")
    if isinstance(buffer, int):
        if not 0 < buffer < len(frames):
            raise MalformedTensor(f"frame {buffer} of {len(frames)} was named")
        view = memoryview(frames[buffer])
    elif buffer.code == RAW_VIEW:
        view = memoryview(buffer.data)
    else:
        raise MalformedTensor(f"extension type {buffer.code} is no tensor")
    if len(view) != prod(tensor.shape) * SIZES[code]:
        raise MalformedTensor(f"{len(view)} bytes are no {tensor.dtype} of shape {tuple(tensor.shape)}")
    return view.cast(code)


def columns(
    scores: LogprobRows | PromptLogprobRows, frames: Sequence[bytes], alternatives: int, rows: int | None = None
) -> LogprobColumns:
    """The first `rows` rows, else all, cut from the engine's width to that of a request for so many alternatives
    (-1: the vocabulary). Raises MalformedTensor, also when there are fewer rows."""
    shape = scores.token_ids.shape
    if len(shape) != 2 or scores.logprobs.shape != shape or scores.ranks.shape != shape[:1]:
        raise MalformedTensor(f"logprobs of shapes {shape}, {scores.logprobs.shape} and {scores.ranks.shape}")
    available, full = shape
    if rows is None:
        rows = available
    elif rows > available:
        raise MalformedTensor(f"{available} rows of logprobs for {rows} tokens")
    width = full if alternatives == WHOLE_VOCABULARY else min(alternatives + 1, full)
    return LogprobColumns(
        width,
        _cut(numbers(scores.token_ids, frames), rows, full, width),
        _cut(numbers(scores.logprobs, frames), rows, full, width),
        numbers(scores.ranks, frames)[:rows].tolist(),
    )


def pack(values: Sequence[int] | Sequence[float], shape: Sequence[int], dtype: str, frames: list[bytes]) -> Tensor:
    """The wire form, in place when it is small, else in a frame that is added; `frames` starts with the message's."""
    content = array(FORMATS[dtype], values).tobytes()
    if len(content) < INLINE_BELOW:
        return Tensor(dtype, shape, Ext(RAW_VIEW, content))
    frames.append(content)
    return Tensor(dtype, shape, len(frames) - 1)


def pack_rows(scores: LogprobColumns, frames: list[bytes]) -> LogprobRows:
    """Scores of sampled tokens as an engine sends them."""
    shape = (scores.rows, scores.width)
    return LogprobRows(
        pack(scores.token_ids, shape, "<i4", frames),
        pack(scores.logprobs, shape, "<f4", frames),
        pack(scores.ranks, shape[:1], "<i8", frames),
    )


def pack_prompt_rows(scores: LogprobColumns, frames: list[bytes]) -> PromptLogprobRows:
    """Scores of prompt tokens as an engine sends them."""
    shape = (scores.rows, scores.width)
    return PromptLogprobRows(
        pack(scores.token_ids, shape, "int32", frames),
        pack(scores.logprobs, shape, "float32", frames),
        pack(scores.ranks, shape[:1], "int32", frames),
    )


def _cut(elements: "memoryview[Any]", rows: int, full: int, width: int) -> list[Any]:
    if rows == 1 or full == width:
        return elements[: rows * width].tolist()
    cut: list[Any] = []
    for start in range(0, rows * full, full):
        cut += elements[start : start + width].tolist()
    return cut
