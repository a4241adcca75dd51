"""The whole corpus asked of Northbound, beside what was recorded of vLLM's frontend."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.parity.answers import Answer, Recorded, read_reference
from tests.parity.case import Case
from tests.parity.comparison import answer_differences
from tests.parity.corpus import CORPUS
from tests.parity.deviations import reasons
from tests.parity.model import write_model
from tests.parity.northbound import Northbound, northbound
from tests.parity.pair import Pair, Probes, as_ids, meant
from tests.parity.servers import SERVERS
from tests.real_engine.parity import Difference
from tests.real_engine.vocabulary import Vocabulary


class Compared(NamedTuple):
    """A case, Northbound's answer, and where it differs from vLLM's, with the deviations that account for it."""

    case: Case
    ours: Answer
    differences: Sequence[tuple[Difference, Sequence[str]]]

    @property
    def unmeant(self) -> Sequence[Difference]:
        return [difference for difference, reasons in self.differences if not reasons]


async def compare(folder: Path) -> Sequence[Compared]:
    """In the order of the corpus but for the servers. Cases that were not recorded are left out."""
    _, recorded = read_reference()
    model = write_model(folder)
    vocabulary = Vocabulary(model)
    compared = []
    for name in SERVERS:
        async with northbound(name, model) as server:
            for case in CORPUS:
                if case.server == name and case.name in recorded:
                    compared.append(await _compared(case, server, recorded[case.name].answer, vocabulary))
    return compared


async def _compared(case: Case, server: Northbound, theirs: Answer, vocabulary: Vocabulary) -> Compared:
    ours = await server.answer(case)
    found = list(answer_differences(ours, theirs))
    if not found:
        return Compared(case, ours, [])
    other = meant(case)
    probes = Probes(
        as_ids=None if theirs.error else await server.answer(as_ids(other or case)),
        meant=None if other is None else await server.answer(other),
    )
    pair = Pair(case, ours, theirs, probes, vocabulary)
    return Compared(case, ours, [(difference, reasons(difference, pair)) for difference in found])


def changed(recorded: Mapping[str, Recorded]) -> Sequence[str]:
    """Names of the cases that are not as they were recorded, or are only on one side."""
    cases = {case.name: dict(case.body) for case in CORPUS}
    return [name for name in cases.keys() | recorded.keys() if cases.get(name) != _request(recorded.get(name))]


def _request(recorded: Recorded | None) -> object:
    return recorded and recorded.request


def summary(compared: Sequence[Compared]) -> Sequence[str]:
    """How much was compared, and how many differences each deviation accounts for."""
    streamed = sum(each.case.streams for each in compared)
    differences = [reasons for each in compared for _, reasons in each.differences]
    counts = Counter(reason for reasons in differences for reason in reasons)
    return [
        f"{len(compared)} requests, {streamed} of them streamed",
        f"{len(differences)} differences, some for more than one reason:",
        *(f"{count:6} {reason}" for reason, count in sorted(counts.items())),
        f"{sum(not reasons for reasons in differences):6} untagged",
    ]
