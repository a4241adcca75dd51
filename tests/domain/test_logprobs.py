"""Logprob values: columns, what is shown of a number, and how many alternatives may be asked for."""

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import RequestError
from domain.logprobs import LogprobColumns, LogprobsNotAllowed, check_alternatives, clamp, distinct

INFINITY = math.inf


def float32(value: float) -> float:
    """The nearest float32, as the double that Python sees of it."""
    narrowed: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return narrowed


class TestClamp:
    """Contract 7.1 and 7.2."""

    @pytest.mark.parametrize("value", [math.nan, -math.nan, INFINITY, -INFINITY, -9999.0, -9999.001, -1e30])
    def test_what_is_no_number_or_too_low_is_the_lowest(self, value: float) -> None:
        assert clamp([value]) == [-9999.0]

    @pytest.mark.parametrize("value", [math.nextafter(-9999.0, 0), -9998.5, -0.5, -0.0, 0.0, 1e-9])
    def test_everything_above_the_lowest_stays(self, value: float) -> None:
        assert clamp([value]) == [value]

    def test_a_float32_stays_the_double_it_is(self) -> None:
        assert clamp([float32(-0.1)]) == [-0.10000000149011612]

    def test_each_value_keeps_its_place(self) -> None:
        assert clamp([-0.5, math.nan, -2.0, -INFINITY]) == [-0.5, -9999.0, -2.0, -9999.0]

    @given(st.lists(st.floats()))
    def test_the_result_is_json_and_none_is_below_the_lowest(self, values: list[float]) -> None:
        clamped = clamp(values)

        assert json.loads(json.dumps(clamped, allow_nan=False)) == clamped
        assert len(clamped) == len(values)
        assert all(value >= -9999.0 for value in clamped)


class TestDistinct:
    """Contract 4.2: each id once, its first occurrence."""

    @pytest.mark.parametrize(
        ("row", "columns"),
        [
            ([], []),
            ([7], [0]),
            ([7, 8, 9], [0, 1, 2]),
            ([7, 7, 8], [0, 2]),
            ([7, 8, 7, 9, 8], [0, 1, 3]),
            ([7, 7, 7], [0]),
        ],
    )
    def test_the_columns_of_first_occurrences_in_order(self, row: list[int], columns: list[int]) -> None:
        assert list(distinct(row)) == columns

    @given(st.lists(st.integers(0, 5)))
    def test_every_id_is_there_once_where_it_first_stands(self, row: list[int]) -> None:
        columns = list(distinct(row))

        assert [row[column] for column in columns] == list(dict.fromkeys(row))
        assert all(column == row.index(row[column]) for column in columns)


class TestColumns:
    COLUMNS = LogprobColumns(2, [10, 11, 20, 21, 30, 31], [-0.1, -1.0, -0.2, -2.0, -0.3, -3.0], [1, 4, 0])

    def test_there_is_a_row_for_each_rank(self) -> None:
        assert self.COLUMNS.rows == 3

    def test_the_first_rows_keep_all_their_columns(self) -> None:
        assert self.COLUMNS.first(2) == LogprobColumns(2, [10, 11, 20, 21], [-0.1, -1.0, -0.2, -2.0], [1, 4])

    def test_the_first_none_of_them_are_no_rows_of_the_same_width(self) -> None:
        assert self.COLUMNS.first(0) == LogprobColumns(2, [], [], [])

    def test_all_rows_are_the_same_columns(self) -> None:
        assert self.COLUMNS.first(3) == self.COLUMNS

    def test_nothing_is_taken_from_the_columns_themselves(self) -> None:
        self.COLUMNS.first(1)

        assert self.COLUMNS.rows == 3


class TestAlternatives:
    """Contract 8.1."""

    VOCABULARY = 300

    @pytest.mark.parametrize(
        ("requested", "cap"), [(None, 20), (None, 0), (0, 0), (0, 20), (20, 20), (1, -1), (300, -1), (-1, -1)]
    )
    def test_what_the_cap_allows_passes(self, requested: int | None, cap: int) -> None:
        check_alternatives("logprobs", requested, cap, self.VOCABULARY)

    @pytest.mark.parametrize(
        ("requested", "cap", "named"),
        [
            (21, 20, "20"),
            (25, 5, "5"),
            (1, 0, "0"),
            (-1, 20, "20"),
            (-2, 20, "20"),
            (-2, -1, "-1"),
            (301, -1, "300"),
        ],
    )
    @pytest.mark.parametrize("param", ["logprobs", "top_logprobs", "prompt_logprobs"])
    def test_what_it_does_not_names_the_field_and_the_cap(
        self, requested: int, cap: int, named: str, param: str
    ) -> None:
        with pytest.raises(LogprobsNotAllowed) as refused:
            check_alternatives(param, requested, cap, self.VOCABULARY)

        assert refused.value.param == param
        assert param in str(refused.value)
        assert named in str(refused.value).replace(str(requested), "", 1)
        assert isinstance(refused.value, RequestError)
