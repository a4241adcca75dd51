"""A few thousand random streams, the same on every run; `script/exactness` runs as many others as wanted."""

import os
from collections import Counter
from pathlib import Path

import pytest

from tests.exactness.run import make, run, vocabularies
from tests.exactness.shares import table, too_few, traits

MODEL = Path(os.environ["NORTHBOUND_EXACTNESS_MODEL"]) if "NORTHBOUND_EXACTNESS_MODEL" in os.environ else None
"""A folder with a byte-level tokenizer to try, too."""

SEED = "suite"
EACH = 350


def indexes(place: int) -> range:
    """Of the streams of one vocabulary."""
    count = len(vocabularies(MODEL))
    return range(place, EACH * count, count)


@pytest.mark.parametrize("place", [pytest.param(n, id=each.name) for n, each in enumerate(vocabularies(MODEL))])
def test_a_client_gets_what_the_contract_says(place: int) -> None:
    failures = run(SEED, indexes(place), MODEL).failures
    assert not failures, f"{len(failures)} of {EACH} failed, the first one:\n{failures[0]}"


def test_the_streams_are_hard_enough() -> None:
    counted: Counter[str] = Counter()
    for place, vocabulary in enumerate(vocabularies(MODEL)):
        for index in indexes(place):
            counted += traits(make(SEED, index, vocabulary), vocabulary)
    assert not too_few(counted), table(counted)
