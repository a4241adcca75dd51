"""Tensors that are packed and read, and those that are not what they say."""

import pytest

from adapters.outbound.vllm_engine.tensors import MalformedTensor, columns, numbers, pack, pack_prompt_rows, pack_rows
from adapters.outbound.vllm_engine.wire import Ext, LogprobRows, Tensor
from domain.logprobs import LogprobColumns

SCORES = LogprobColumns(2, [1, 2, 3, 4], [-0.5, -1.5, -2.5, -3.5], [1, 7])
WIDE = LogprobColumns(40, list(range(80)), [-0.25 * i for i in range(80)], [1, 2])


@pytest.mark.parametrize("scores", [SCORES, WIDE])
def test_rows_read_as_they_were_packed(scores: LogprobColumns) -> None:
    frames = [b""]
    assert columns(pack_rows(scores, frames), frames, alternatives=scores.width - 1) == scores
    frames = [b""]
    assert columns(pack_prompt_rows(scores, frames), frames, alternatives=-1) == scores


def test_small_tensors_travel_in_place_and_large_ones_in_frames() -> None:
    frames = [b""]
    small, large = pack([0] * 63, (63,), "<i4", frames), pack([0] * 64, (64,), "<i4", frames)
    assert isinstance(small.buffer, Ext)
    assert (large.buffer, len(frames), len(frames[1])) == (1, 2, 256)


def test_only_the_rows_of_tokens_are_taken() -> None:
    frames = [b""]
    rows = pack_rows(SCORES, frames)
    assert columns(rows, frames, alternatives=0, rows=1) == LogprobColumns(1, [1], [-0.5], [1])
    assert columns(rows, frames, alternatives=1, rows=0) == LogprobColumns(2, [], [], [])
    with pytest.raises(MalformedTensor, match="2 rows of logprobs for 3 tokens"):
        columns(rows, frames, alternatives=0, rows=3)


@pytest.mark.parametrize(
    "tensor",
    [
        Tensor(">i4", [1], Ext(3, b"1234")),
        Tensor("bfloat16", [1], Ext(3, b"12")),
        Tensor("<i4", [2], Ext(3, b"1234")),
        Tensor("<i4", [1], Ext(3, b"12345")),
        Tensor("<i4", [1], Ext(1, b"1234")),
        Tensor("<i4", [1], 0),
        Tensor("<i4", [1], 2),
        Tensor("<i4", [1], -1),
    ],
)
def test_malformed_tensors(tensor: Tensor) -> None:
    with pytest.raises(MalformedTensor):
        numbers(tensor, [b"1234", b"1234"])


def test_shapes_must_agree() -> None:
    frames = [b""]
    ids, flat = pack([1, 2], (1, 2), "<i4", frames), pack([1, 2], (2,), "<i4", frames)
    logprobs, rank = pack([-1.0, -2.0], (1, 2), "<f4", frames), pack([1], (1,), "<i4", frames)
    assert columns(LogprobRows(ids, logprobs, rank), frames, alternatives=1).rows == 1
    for malformed in (
        LogprobRows(flat, logprobs, rank),
        LogprobRows(ids, pack([-1.0], (1, 1), "<f4", frames), rank),
        LogprobRows(ids, logprobs, flat),
    ):
        with pytest.raises(MalformedTensor):
            columns(malformed, frames, alternatives=1)
