"""All answers of Northbound and of vLLM's Python frontend, side by side."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from tests.real_engine.answers import Json
from tests.real_engine.case import Case
from tests.real_engine.deviations import reasons
from tests.real_engine.parity import Difference, anonymous, differences
from tests.real_engine.questions import QUESTIONS
from tests.real_engine.recording import Recording
from tests.real_engine.vocabulary import Vocabulary


class Compared(NamedTuple):
    """One answer and its differences, each with the deviations that account for it."""

    case: Case
    differences: Sequence[tuple[Difference, Sequence[str]]]

    @property
    def unmeant(self) -> Sequence[Difference]:
        return [difference for difference, reasons in self.differences if not reasons]


Comparison = Mapping[str, Sequence[Compared]]
"""For each question by name: the whole answer and, if it streams, its chunks as one."""

COMPARISON = pytest.StashKey[Comparison]()
"""Where it is kept for the end of the run."""


def compare(ours: Recording, theirs: Recording, as_ids: Mapping[str, Json], vocabulary: Vocabulary) -> Comparison:
    """`as_ids` are Northbound's answers with ids for tokens."""
    comparison = {}
    for question in QUESTIONS:
        name = question.name
        comparison[name] = [
            _compared(Case(question, our_body, their_body, as_ids[name], vocabulary))
            for our_body, their_body in zip(ours[name].bodies, theirs[name].bodies, strict=True)
        ]
    return comparison


def summary(comparison: Comparison) -> Sequence[str]:
    """How much was compared, and how many differences each deviation accounts for."""
    answers = [compared for of_question in comparison.values() for compared in of_question]
    counts = Counter(reason for compared in answers for _, reasons in compared.differences for reason in reasons)
    total = sum(len(compared.differences) for compared in answers)
    untagged = sum(len(compared.unmeant) for compared in answers)
    streamed = len(answers) - len(comparison)
    return [
        f"{len(answers)} answers to {len(comparison)} questions, {streamed} of them streamed",
        f"{total} differences, some for more than one reason:",
        *(f"{count:6} {reason}" for reason, count in sorted(counts.items())),
        f"{untagged:6} untagged",
    ]


def _compared(case: Case) -> Compared:
    ours, theirs = (anonymous(body) if "id" in body else body for body in (case.ours, case.theirs))
    return Compared(case, [(each, reasons(each, case)) for each in differences(ours, theirs)])
