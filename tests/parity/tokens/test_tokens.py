"""The same requests on the same engine: answers are alike, but where a row of docs/compatibility.md says otherwise."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.parity.model import write_model
from tests.parity.northbound import northbound
from tests.parity.tokens.cases import CASES, Case
from tests.parity.tokens.comparison import Answer, answer_differences
from tests.parity.tokens.deviations import DEVIATIONS, Pair, reasons
from tests.parity.tokens.record import SERVER, answer_of, read_reference
from tests.real_engine.parity import Difference
from tests.real_engine.vocabulary import Vocabulary

COMPATIBILITY = Path(__file__).parents[3] / "docs" / "compatibility.md"
Compared = Mapping[str, Sequence[tuple[Difference, Sequence[str]]]]
"""By the names of the cases: where the answers differ, with the deviations that account for it."""


@pytest.fixture(scope="module")
def reference() -> Mapping[str, Answer]:
    return read_reference()


@pytest.fixture(scope="module")
def compared(reference: Mapping[str, Answer], tmp_path_factory: pytest.TempPathFactory) -> Compared:
    return asyncio.run(_compare(reference, tmp_path_factory.mktemp("parity") / "model"))


async def _compare(reference: Mapping[str, Answer], folder: Path) -> Compared:
    model = write_model(folder)
    vocabulary = Vocabulary(model)
    compared = {}
    async with northbound(SERVER, model) as server:
        for case in CASES:
            ours, theirs = answer_of(await server.post(case.path, case.body)), reference[case.name]
            found = list(answer_differences(ours, theirs))
            like = case.like if found else None
            probe = None if like is None else answer_of(await server.post(like.path, like.body))
            pair = Pair(case, ours, theirs, probe, vocabulary)
            compared[case.name] = [(difference, reasons(difference, pair)) for difference in found]
    return compared


def test_what_was_recorded_is_what_is_asked(reference: Mapping[str, Answer]) -> None:
    assert list(reference) == [case.name for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name[:100])
def test_nothing_differs_but_what_is_meant_to(case: Case, compared: Compared) -> None:
    assert not [str(difference) for difference, reasons in compared[case.name] if not reasons]


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_every_deviation_is_real(deviation: str, compared: Compared) -> None:
    assert any(deviation in reasons for found in compared.values() for _, reasons in found)


def test_every_deviation_is_a_row() -> None:
    rows = {line.split("|")[1].strip() for line in COMPATIBILITY.read_text().splitlines() if line.startswith("|")}
    assert not DEVIATIONS.keys() - rows
