"""Rows of scores as JSON: the same in Python and compiled."""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.inbound.http.openai import filling
from adapters.inbound.http.openai.filling import AroundId, FillRows, Format
from tests.compiled import compiled_fill_rows, needs_compiler


@pytest.fixture(params=["python", pytest.param("compiled", marks=needs_compiler)])
def fill_rows(request: pytest.FixtureRequest) -> FillRows:
    return filling.fill_rows if request.param == "python" else compiled_fill_rows()


def form(token_id: int) -> Format:
    return b'"%d":%%b' % token_id


def never(token_id: int) -> Format:
    raise AssertionError(f"{token_id} is kept")


def fill(
    fill_rows: FillRows,
    rows: Sequence[Sequence[int]],
    values: Sequence[float],
    *,
    firsts: Sequence[Format] | None = None,
    shown: int | None = None,
    most: int | None = None,
    ranks: Sequence[int] | None = None,
    heads: Sequence[Format] | None = None,
    kept: list[Format | None] | None = None,
    make: Callable[[int], Format] | AroundId = form,
    around: tuple[bytes, bytes] = (b"{", b"}"),
    keys_once: bool = True,
) -> tuple[bytes, bytes]:
    width = len(rows[0])
    return fill_rows(
        [token_id for row in rows for token_id in row],
        values,
        ranks,
        width,
        width if shown is None else shown,
        width if most is None else most,
        heads,
        [form(row[0]) for row in rows] if firsts is None else firsts,
        [] if kept is None else kept,
        make,
        *around,
        keys_once,
    )


def test_rows_and_their_first_numbers(fill_rows: FillRows) -> None:
    filled = fill(fill_rows, [[5, 6, 7], [8, 9, 10]], [-0.5, -1.5, -2.25, -1e-7, -3.0, -9999.0])

    assert filled == (b'{"5":-0.5,"6":-1.5,"7":-2.25},{"8":-1e-7,"9":-3.0,"10":-9999.0}', b"-0.5,-1e-7")


def test_what_has_no_json_or_is_too_low_is_clamped(fill_rows: FillRows) -> None:
    low = [math.nan, math.inf, -math.inf, -9999.0, -9999.0009765625, -9998.9990234375, -10000.0, -1e20, -1e-20, 0.0]

    rows, _ = fill(fill_rows, [range(10)], low)

    assert list(json.loads(rows).values()) == [-9999.0] * 5 + [-9998.9990234375, -9999.0, -9999.0, -1e-20, 0.0]


def test_no_rows(fill_rows: FillRows) -> None:
    assert fill_rows([], [], None, 3, 3, 3, None, [], [], never, b"{", b"}", True) == (b"", b"")


def test_the_first_entry_has_its_own_format(fill_rows: FillRows) -> None:
    rows, _ = fill(fill_rows, [[5, 6]], [-1.0, -2.0], firsts=[b'"own":%b'])

    assert rows == b'{"own":-1.0,"6":-2.0}'


def test_formats_are_taken_from_what_is_kept_by_id(fill_rows: FillRows) -> None:
    kept: list[Format | None] = [b'"zero":%b', None, b'"two":%b']
    made: list[int] = []

    def make(token_id: int) -> Format:
        made.append(token_id)
        return form(token_id)

    rows, _ = fill(fill_rows, [[9, 0, 2, 1, 3, -1]], [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], kept=kept, make=make)

    assert rows == b'{"9":-1.0,"zero":-2.0,"two":-3.0,"1":-4.0,"3":-5.0,"-1":-6.0}'
    assert made == [1, 3, -1]


def test_the_largest_ids_of_the_wire(fill_rows: FillRows) -> None:
    rows, _ = fill(fill_rows, [[2**64 - 1, 2**63, 2**64 - 1, 2**63 - 1]], [-1.0, -2.0, -1.0, -3.0])

    assert rows == b'{"18446744073709551615":-1.0,"9223372036854775808":-2.0,"9223372036854775807":-3.0}'


def test_ids_below_zero_are_not_counted_from_the_end(fill_rows: FillRows) -> None:
    rows, _ = fill(fill_rows, [[0, 1, -1]], [-1.0, -2.0, -3.0], kept=[b'"zero":%b', b'"one":%b'])

    assert rows == b'{"0":-1.0,"one":-2.0,"-1":-3.0}'


def test_what_is_made_may_be_kept_meanwhile(fill_rows: FillRows) -> None:
    kept: list[Format | None] = []

    def make(token_id: int) -> Format:
        kept[:] = [None] * 4 if token_id % 2 else [b'"kept%d":%%b' % token_id] * 9
        return form(token_id)

    rows, _ = fill(fill_rows, [[9, 1, 2], [9, 4, 3]], [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0], kept=kept, make=make)

    assert rows == b'{"9":-1.0,"1":-2.0,"2":-3.0},{"9":-4.0,"kept2":-5.0}'


def test_a_format_may_be_written_around_its_id(fill_rows: FillRows) -> None:
    around: AroundId = (b'"id ', b'":%b')

    rows, _ = fill(fill_rows, [[5, 6, 5, -7, 2**63]], [-1.0, -2.0, -3.0, -4.0, -5.0], make=around)

    assert rows == b'{"5":-1.0,"id 6":-2.0,"id -7":-4.0,"id 9223372036854775808":-5.0}'


@pytest.mark.parametrize("width", [3, 40, 200])
def test_each_id_counts_where_it_stands_first(fill_rows: FillRows, width: int) -> None:
    row = [*range(width), *range(width)][: 2 * width - 1]

    rows, _ = fill(fill_rows, [row], [-float(column) for column in range(len(row))], keys_once=False)

    assert json.loads(rows) == {str(token_id): -float(token_id) for token_id in range(width)}


@pytest.mark.parametrize("width", [4, 40, 200])
def test_of_formats_that_are_the_same_the_first_stays(fill_rows: FillRows, width: int) -> None:
    def same(token_id: int) -> Format:
        return b'"%d":%%b' % (token_id % 2)

    row, values = range(width), [-1.0 - column for column in range(width)]

    once, _ = fill(fill_rows, [row], values, make=same)
    often, _ = fill(fill_rows, [row], values, make=same, keys_once=False)

    assert once == b'{"0":-1.0,"1":-2.0}'
    assert often.count(b":") == width


def test_ids_count_before_what_is_not_shown(fill_rows: FillRows) -> None:
    """So that the token itself, once more among the likely ones, takes none of their places."""
    row, values = [5, 6, 5, 7, 8], [-1.0, -2.0, -1.0, -3.0, -4.0]

    assert fill(fill_rows, [row], values, most=3)[0] == b'{"5":-1.0,"6":-2.0,"7":-3.0}'
    assert fill(fill_rows, [row], values, shown=3)[0] == b'{"5":-1.0,"6":-2.0}'
    assert fill(fill_rows, [row, row], values + values, most=0) == (b"{},{}", b"-1.0,-1.0")


def test_heads_have_the_first_number(fill_rows: FillRows) -> None:
    rows, _ = fill(
        fill_rows, [[5, 6], [7, 8]], [-1.0, -2.0, -3.0, -4.0], heads=[b"100%% %b [", b"%b ["], around=(b"<", b"]>")
    )

    assert rows == b'<100% -1.0 ["5":-1.0,"6":-2.0]>,<-3.0 ["7":-3.0,"8":-4.0]>'


def test_ranks_are_of_the_row_and_then_of_the_column(fill_rows: FillRows) -> None:
    def ranked(token_id: int) -> Format:
        return b'"%d":[%%b,%%b]' % token_id

    rows, _ = fill(
        fill_rows,
        [[5, 6, 5, 7], [8, 9, 6, 7]],
        [-1.0, -2.0, -1.0, -3.0, -4.0, -5.0, -6.0, -7.0],
        firsts=[ranked(5), ranked(8)],
        ranks=[123456, 0],
        make=ranked,
    )

    assert json.loads(b"[" + rows + b"]") == [
        {"5": [-1.0, 123456], "6": [-2.0, 1], "7": [-3.0, 3]},
        {"8": [-4.0, None], "9": [-5.0, 1], "6": [-6.0, 2], "7": [-7.0, 3]},
    ]


def test_percent_signs_are_text(fill_rows: FillRows) -> None:
    rows, _ = fill(fill_rows, [[5, 6]], [-1.0, -2.0], firsts=[b'"100%%":%b'], make=lambda _: b'"%%b%%%%d":%b')

    assert rows == b'{"100%":-1.0,"%b%%d":-2.0}'


@pytest.mark.parametrize(
    "wrong",
    [
        {"values": [-1.0]},
        {"make": lambda _: b"%b %b"},
        {"make": lambda _: None},
        {"make": lambda _: "text"},
        {"ranks": []},
        {"heads": []},
    ],
    ids=str,
)
def test_what_cannot_be_is_an_error(fill_rows: FillRows, wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"values": [-1.0, -2.0], **wrong}
    with pytest.raises((TypeError, ValueError, IndexError)):
        fill(fill_rows, [[5, 6]], given.pop("values"), **given)


def test_what_making_a_format_raises_is_raised(fill_rows: FillRows) -> None:
    with pytest.raises(AssertionError, match="6 is kept"):
        fill(fill_rows, [[5, 6]], [-1.0, -2.0], make=never)


@needs_compiler
@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_both_ways_give_the_same(data: st.DataObject) -> None:
    """Of few ids and texts, so that they meet."""
    width, count = data.draw(st.sampled_from([1, 2, 6, 21, 40])), data.draw(st.integers(0, 3))
    shown = data.draw(st.integers(1, width))
    ids = st.one_of(st.integers(-2, 12), st.integers(-(2**63), 2**63 - 1))
    row = st.lists(ids, min_size=width * count, max_size=width * count)
    logprobs = st.lists(st.floats(width=32), min_size=width * count, max_size=width * count)
    texts = st.sampled_from([b"a", b"b", b"%%", b"%%b", "ü".encode(), b"long" * 100])
    ranks = data.draw(st.none() | st.lists(st.integers(0, 2**63 - 1), min_size=count, max_size=count))
    place = b":%b" if ranks is None else b":%b,%b"
    by_id = data.draw(st.lists(st.none() | texts.map(lambda text: text + place), max_size=12))
    made = data.draw(texts) + place
    heads = data.draw(st.none() | st.lists(texts.map(lambda text: text + b":%b"), min_size=count, max_size=count))
    arguments = (
        data.draw(row),
        data.draw(logprobs),
        ranks,
        width,
        shown,
        data.draw(st.integers(0, width)),
        heads,
        data.draw(st.lists(texts.map(lambda text: text + place), min_size=count, max_size=count)),
        by_id,
        data.draw(st.sampled_from([lambda token_id: b"%d" % (token_id % 5) + made, (b"id", b"=" + place)])),
        b"{",
        b"}",
        data.draw(st.booleans()),
    )

    assert compiled_fill_rows()(*arguments) == filling.fill_rows(*arguments)
