"""Whatever a client sends, and whenever it leaves, it gets an answer or is told what is wrong; nothing is left behind.

`script/fuzz` sends as many others as wanted.
"""

import pytest
from schemathesis import GenerationMode

from tests.fuzz import api
from tests.fuzz.run import SENT, run
from tests.fuzz.servers import KINDS, Kind

SEED = "suite"
EACH = 300
BY_THE_DOCUMENT = 50
OF_TWO_KINDS = 10
"""Where a body holds an answer and its request, and takes as long as several others."""


@pytest.mark.parametrize("kind", KINDS)
def test_answered_or_told(kind: Kind) -> None:
    counted, failure = run(kind, SEED, EACH)
    assert failure is None, failure
    assert counted[SENT] >= EACH
    assert min(counted["200"], counted["400"]) > EACH / 10, counted


@pytest.mark.parametrize("mode", GenerationMode, ids=str)
@pytest.mark.parametrize("label", api.operations())
def test_as_the_document_says(label: str, mode: GenerationMode) -> None:
    derenders = label.endswith("/derender")
    counted, failure = api.run(label, mode, SEED, OF_TWO_KINDS if derenders else BY_THE_DOCUMENT)
    assert failure is None, failure
    # there is no adapter at a random path, nor one of a random name; random rows are of other tokens
    fits = mode is GenerationMode.POSITIVE and "lora" not in label and not derenders
    assert bool(counted[api.ANSWERED]) == fits, counted
