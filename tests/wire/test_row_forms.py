"""Scores of one token that are read by their form, beside the same ones decoded."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from adapters.outbound.vllm_engine.row_forms import row_columns
from adapters.outbound.vllm_engine.tensors import MalformedTensor, columns, pack_rows
from adapters.outbound.vllm_engine.wire import LogprobRows, decode, encode
from domain.logprobs import LogprobColumns


def scores(width: int, rows: int = 1, first_id: int = 0) -> LogprobColumns:
    count = width * rows
    return LogprobColumns(
        width, [first_id + i for i in range(count)], [-0.25 * i for i in range(count)], list(range(1, rows + 1))
    )


def packed(of: LogprobColumns) -> tuple[Raw, list[bytes]]:
    frames = [b""]
    rows = pack_rows(of, frames)
    return Raw(encode(rows)), frames


def plain(found: LogprobColumns | None) -> Any:
    assert found is not None
    return found.width, list(found.token_ids), list(found.logprobs), list(found.ranks)


@pytest.mark.parametrize("width", [1, 2, 6, 21, 63, 64, 100])
@pytest.mark.parametrize("alternatives", [-1, 0, 1, 5, 20, 200])
def test_every_row_reads_as_it_was_packed(width: int, alternatives: int) -> None:
    for first_id in (0, 7, 2**31 - 200):
        sent = scores(width, first_id=first_id)
        rows, frames = packed(sent)
        wanted = columns(decode(rows, LogprobRows), frames, alternatives, 1)
        assert plain(row_columns(rows, frames, alternatives, 1)) == plain(wanted)


def test_more_and_fewer_rows_than_one() -> None:
    for tokens in (1, 2, 3):
        rows, frames = packed(scores(4, rows=3))
        assert plain(row_columns(rows, frames, 1, tokens)) == plain(
            columns(decode(rows, LogprobRows), frames, 1, tokens)
        )
    rows, frames = packed(scores(4))
    assert row_columns(rows, frames, -1, 1) is not None
    assert plain(row_columns(rows, frames, -1, 0)) == (4, [], [], [])
    with pytest.raises(MalformedTensor, match="1 rows of logprobs for 2 tokens"):
        row_columns(rows, frames, -1, 2)


def test_no_scores() -> None:
    assert row_columns(Raw(encode(None)), [b""], -1, 1) is None
    assert row_columns(None, [b""], -1, 1) is None


@given(st.data())
def test_whatever_is_sent_reads_as_if_it_were_decoded(data: st.DataObject) -> None:
    """One byte of rows whose form is known is another."""
    sent, frames = packed(scores(3))
    assert plain(row_columns(sent, frames, -1, 1)) == plain(scores(3))
    content = bytearray(sent)
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    changed = Raw(bytes(content))

    assert outcome(lambda: row_columns(changed, frames, 1, 1)) == outcome(
        lambda: columns(decode(changed, LogprobRows), frames, 1, 1)
    )


def outcome(read: Any) -> Any:
    """What it gives, NaN included, or how it fails."""
    try:
        return repr(plain(read()))
    except (MalformedTensor, msgspec.DecodeError) as failure:
        return type(failure)
