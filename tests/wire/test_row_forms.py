"""Scores of one token that are read in place, in Python and compiled, beside the same ones decoded."""

import json
import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from adapters.outbound.vllm_engine import row_forms
from adapters.outbound.vllm_engine.outputs import delta_of
from adapters.outbound.vllm_engine.row_forms import ReadRow, any_rows
from adapters.outbound.vllm_engine.tensors import FORMATS, SIZES, MalformedTensor, columns, pack, pack_rows
from adapters.outbound.vllm_engine.wire import (
    RAW_VIEW,
    EngineCoreOutput,
    EngineCoreOutputs,
    Ext,
    LogprobRows,
    UnreadOutput,
    decode,
    encode,
)
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams
from tests.compiled import compiled_read_row, needs_compiler
from tests.cost.counting import memory

RECORDED = json.loads(Path(__file__).with_name("golden.json").read_text())["outputs"]
SPEAKING = bytes.fromhex("00 01 03 7f 80 90 91 92 93 94 95 a3 c0 c7 c8 cc d4 d5 d6 d7 d8 ff")
"""Bytes that mean something in msgpack."""

IMPLEMENTATIONS = ["python", pytest.param("compiled", marks=needs_compiler)]


def implementation(name: str) -> ReadRow:
    return row_forms.read_row if name == "python" else compiled_read_row()


@pytest.fixture(params=IMPLEMENTATIONS)
def read_row(request: pytest.FixtureRequest) -> ReadRow:
    return implementation(request.param)


def scores(width: int, rows: int = 1, first_id: int = 0) -> LogprobColumns:
    count = width * rows
    return LogprobColumns(
        width, [first_id + i for i in range(count)], [-0.25 * i for i in range(count)], list(range(1, rows + 1))
    )


def packed(of: LogprobColumns) -> tuple[Raw, list[bytes]]:
    frames = [b""]
    rows = pack_rows(of, frames)
    return Raw(encode(rows)), frames


def of_types(width: int, ids: str, logprobs: str, ranks: str) -> LogprobRows:
    return LogprobRows(
        pack(range(1, width + 1), (1, width), ids, []),
        pack(range(width), (1, width), logprobs, []),
        pack([9], (1,), ranks, []),
    )


def plain(found: LogprobColumns | None) -> Any:
    assert found is not None
    return found.width, list(found.token_ids), list(found.logprobs), list(found.ranks)


def outcome(read: Any) -> Any:
    """What it gives, NaN included, or how it fails."""
    try:
        return repr(plain(read()))
    except (MalformedTensor, msgspec.DecodeError) as failure:
        return type(failure)


def reads_the_same(read_row: ReadRow, rows: Raw, frames: Sequence[bytes], alternatives: int) -> bool:
    """As if it were decoded, or not at all."""
    found = read_row(rows, alternatives)
    return found is None or outcome(lambda: found) == outcome(lambda: decoded(rows, frames, alternatives))


def decoded(rows: Raw, frames: Sequence[bytes], alternatives: int) -> LogprobColumns:
    return columns(decode(rows, LogprobRows), frames, alternatives, 1)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 6, 21, 62, 63])
@pytest.mark.parametrize("alternatives", [-1, 0, 1, 5, 20, 62, 63, 200, 2**63])
def test_every_row_in_place_reads_as_it_was_packed(width: int, alternatives: int, read_row: ReadRow) -> None:
    for first_id in (0, 7, 2**31 - 200, -5):
        rows, frames = packed(scores(width, first_id=first_id))
        assert plain(read_row(rows, alternatives)) == plain(decoded(rows, frames, alternatives))


@pytest.mark.parametrize("width", [64, 100])
def test_what_is_in_other_frames_is_not_read_in_place(width: int, read_row: ReadRow) -> None:
    rows, frames = packed(scores(width))
    assert len(frames) > 1
    assert read_row(rows, -1) is None
    assert plain(any_rows(rows, frames, -1, 1)) == plain(scores(width))


@pytest.mark.parametrize(("name", "width"), [("logprobs in place", 2), ("64-bit", 2), ("extremes", 3)])
def test_rows_of_a_real_engine(name: str, width: int, read_row: ReadRow) -> None:
    frames = [bytes.fromhex(frame) for frame in RECORDED[name]]
    [output] = decode(frames[0], EngineCoreOutputs[UnreadOutput]).outputs
    rows: Any = output.new_logprobs

    found = read_row(rows, -1)

    assert found is not None
    assert found.width == width
    assert outcome(lambda: found) == outcome(lambda: decoded(rows, frames, -1))


@pytest.mark.parametrize("width", [1, 2, 4, 8, 31])
def test_types_of_elements(width: int, read_row: ReadRow) -> None:
    """Those of an engine's arrays are read; any other is read right, or not."""
    for types in product(("<i4", "<i8", "<f4", "<f8"), repeat=3):
        rows = Raw(encode(of_types(width, *types)))
        assert outcome(lambda rows=rows: read_row(rows, 2)) == outcome(lambda rows=rows: decoded(rows, [], 2))
    for types in product(FORMATS, repeat=3):
        assert reads_the_same(read_row, Raw(encode(of_types(width, *types))), [], 2)


def some_shape(choose: random.Random) -> list[int]:
    return [choose.choice([0, 1, 1, 1, 2, 3, 128, 300]) for _ in range(choose.choice([0, 1, 1, 2, 2, 2, 3]))]


def some_tensor(choose: random.Random, shape: list[int]) -> Any:
    dtype = choose.choice([*FORMATS, "<i4", "<f4", "<i8", "<b4", ">i4", "<i3", "", 4])
    elements = 1
    for length in shape:
        elements *= length
    size = SIZES[FORMATS[dtype]] if dtype in FORMATS else 4
    content = choose.randbytes(max(0, elements * size + choose.choice([0, 0, 0, 0, 0, 0, 1, -1, size])))
    place: Any = Ext(choose.choice([RAW_VIEW, RAW_VIEW, RAW_VIEW, RAW_VIEW, 1]), content)
    if choose.random() < 0.05:
        place = choose.choice([0, 1, 2, None, content])
    return [dtype, shape, place, *([None] if choose.random() < 0.05 else [])]


def test_shapes_types_and_sizes_that_do_not_fit(read_row: ReadRow) -> None:
    choose = random.Random(7)
    for _ in range(4000):
        wide, short = some_shape(choose), some_shape(choose)
        likely = [1, choose.choice([1, 2, 3, 6])]
        shapes = [choose.choice([likely, likely, likely, wide]) for _ in range(2)] + [choose.choice([[1], [1], short])]
        tensors = [some_tensor(choose, shape) for shape in shapes]
        rest = choose.choice([[], [None], [None], [5], [[1]], [None, None]])
        rows = Raw(encode([*tensors, *rest][: choose.choice([9, 9, 9, 9, 2, 3])]))
        assert reads_the_same(read_row, rows, [b"", b"1234"], choose.choice([-1, 0, 1, 5])), bytes(rows)


def test_bytes_that_are_lost_or_others(read_row: ReadRow) -> None:
    choose = random.Random(11)
    for width in (1, 2, 4, 6, 63):
        sent, frames = packed(scores(width))
        for end in range(len(sent)):
            assert read_row(Raw(bytes(sent)[:end]), -1) is None
        assert read_row(Raw(bytes(sent) + b"\xc0"), -1) is None
        for _ in range(1500):
            content = bytearray(sent)
            for _ in range(choose.choice([1, 1, 2, 3])):
                place = choose.randrange(choose.choice([16, len(content)]))
                content[place] = choose.choice([choose.randrange(256), *SPEAKING])
            assert reads_the_same(read_row, Raw(bytes(content)), frames, choose.choice([-1, 0, 5])), bytes(content)
        assert plain(read_row(sent, -1)) == plain(scores(width))


def test_garbage(read_row: ReadRow) -> None:
    choose = random.Random(13)
    for _ in range(2000):
        rows = Raw(choose.choice([b"\x94", b"\x94\x93\xa3<i4\x92\x01", b""]) + choose.randbytes(choose.randrange(40)))
        assert reads_the_same(read_row, rows, [], -1), bytes(rows)


def test_no_scores(read_row: ReadRow) -> None:
    nil = Raw(encode(None))
    assert read_row(nil, -1) is None
    assert read_row(None, -1) is None
    assert read_row(decode(packed(scores(2))[0], LogprobRows), -1) is None
    assert any_rows(nil, [b""], -1, 1) is None
    assert any_rows(None, [b""], -1, 1) is None


def test_more_and_fewer_rows_than_one(read_row: ReadRow) -> None:
    def read(rows: int, tokens: int) -> LogprobColumns | None:
        frames = [b""]
        output = EngineCoreOutput("r", list(range(tokens)), pack_rows(scores(4, rows), frames))
        [unread] = decode(encode(EngineCoreOutputs(outputs=[output])), EngineCoreOutputs[UnreadOutput]).outputs
        return delta_of(unread, frames, SamplingParams(logprobs=1), 0.0, read_row, is_first=False).logprobs

    whole = columns(pack_rows(scores(4, 3), [b""]), [], 1)
    for tokens in (1, 2, 3):
        assert plain(read(3, tokens)) == plain(whole.first(tokens))
    assert plain(read(1, 0)) == (2, [], [], [])
    with pytest.raises(MalformedTensor, match="1 rows of logprobs for 2 tokens"):
        read(1, 2)


@pytest.mark.parametrize("implemented", IMPLEMENTATIONS)
@given(data=st.data())
def test_whatever_is_sent_reads_as_if_it_were_decoded(implemented: str, data: st.DataObject) -> None:
    """One byte of rows whose form is known is another."""
    read_row = implementation(implemented)
    sent, frames = packed(scores(3))
    assert plain(read_row(sent, -1)) == plain(scores(3))
    content = bytearray(sent)
    content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))

    assert reads_the_same(read_row, Raw(bytes(content)), frames, 1)


def test_nothing_is_kept_of_what_was_read(read_row: ReadRow) -> None:
    sent, _ = packed(scores(6, first_id=1000))
    malformed = Raw(bytes(sent)[:-3])

    def read() -> None:
        for _ in range(1000):
            read_row(sent, 3)
            read_row(malformed, 3)

    read()
    assert memory(read).kept < 1000


@needs_compiler
def test_arguments_that_cannot_be() -> None:
    read_row: Any = compiled_read_row()
    sent, _ = packed(scores(2))
    for arguments in ((), (sent,), (sent, 1, 2), (sent, None), (sent, "1")):
        with pytest.raises(TypeError):
            read_row(*arguments)
