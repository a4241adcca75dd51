"""Northbound beside what vLLM's Python frontend answered to the same requests on the same engine."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.parity.answers import Recorded, read_reference
from tests.parity.compared import Compared, changed, compare
from tests.parity.corpus import CORPUS
from tests.parity.coverage import missing
from tests.parity.deviations import DEVIATIONS
from tests.parity.refusals import NOT_SERVED

pytestmark = pytest.mark.timeout(300)  # where processors are few and busy

COMPATIBILITY = Path(__file__).parents[2] / "docs" / "compatibility.md"
LONGEST_MESSAGE = 250


@pytest.fixture(scope="module")
def reference() -> tuple[Mapping[str, Any], Mapping[str, Recorded]]:
    return read_reference()


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Compared]:
    return asyncio.run(compare(tmp_path_factory.mktemp("parity") / "model"))


def test_what_was_recorded_is_what_is_asked(reference: tuple[Any, Mapping[str, Recorded]]) -> None:
    """Else script/record-parity is to be run."""
    _, recorded = reference
    assert not changed(recorded)


def test_every_field_is_asked_about(reference: tuple[Mapping[str, Any], Any]) -> None:
    """As vLLM's own schemas list them."""
    head, _ = reference
    assert not missing(CORPUS, head["fields"])


def test_nothing_differs_but_what_is_meant_to(compared: Sequence[Compared]) -> None:
    lines = [f"{each.case.name}: {difference}" for each in compared for difference in each.unmeant]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_every_deviation_is_real(compared: Sequence[Compared], deviation: str) -> None:
    assert any(deviation in reasons for each in compared for _, reasons in each.differences)


def test_refusals_are_short_and_name_the_field(compared: Sequence[Compared]) -> None:
    errors = [(each.case.name, each.ours.error) for each in compared if each.ours.error is not None]
    assert errors
    for name, error in errors:
        assert 0 < len(error["message"]) <= LONGEST_MESSAGE, name
        names = [error["param"], error["param"].replace("_", " "), "prompt" if error["param"] == "messages" else ""]
        assert any(each and each in error["message"] for each in names), (name, error)


def test_every_deviation_is_a_row() -> None:
    rows = {line.split("|")[1].strip() for line in COMPATIBILITY.read_text().splitlines() if line.startswith("|")}
    assert not DEVIATIONS.keys() - rows - {NOT_SERVED}


def test_the_counts_in_the_docs(compared: Sequence[Compared], reference: tuple[Mapping[str, Any], Any]) -> None:
    text = " ".join(COMPATIBILITY.read_text().split())
    fields = [len(names) for names in reference[0]["fields"].values()]
    assert f"{len(compared):,} requests, {sum(each.case.streams for each in compared):,} of them streamed" in text
    assert f"{sum(len(each.differences) for each in compared):,} values, chunks and engine requests differ" in text
    assert "All {} fields of its schema for completions and all {} for chat".format(*fields) in text
