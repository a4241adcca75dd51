"""Which request fields the corpus asks about, and how."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tests.parity.case import Case, Kind
from tests.parity.refusals import REFUSED

KINDS = (Kind.DEFAULT, Kind.NULL, Kind.EDGE, Kind.ERROR, Kind.WRONG_TYPE)


def counts(cases: Sequence[Case]) -> Mapping[tuple[str, str], Counter[str]]:
    """By path and field: cases of each kind, and how many streamed, or together with others."""
    told: dict[tuple[str, str], Counter[str]] = {}
    for case in cases:
        for field in case.fields:
            counter = told.setdefault((case.path, field), Counter())
            counter[case.kind] += 1
            counter["streamed"] += case.streams
    return told


def missing(cases: Sequence[Case], fields: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Of vLLM's fields, by path, what is not asked: a default, an edge or an error, or anything streamed. A field that
    is refused has no edges, and some have no values without a meaning."""
    told = counts(cases)
    lacking = []
    for path, names in fields.items():
        for name in names:
            counter = told.get((path, name), Counter())
            wrong = counter[Kind.ERROR] + counter[Kind.WRONG_TYPE]
            has = {
                "default": counter[Kind.DEFAULT],
                "edge": counter[Kind.EDGE] + counter[Kind.COMBINED],
                "error": wrong,
            }
            if name != "stream":
                has["streamed"] = counter["streamed"]
            if name in REFUSED:
                del has["edge"]
            lacking += [f"{path} {name}: {what}" for what, count in has.items() if not count]
    return lacking


def table(cases: Sequence[Case]) -> Sequence[str]:
    """One line a field."""
    heads = [*(str(kind) for kind in KINDS), str(Kind.COMBINED), "streamed"]
    lines = [f"{'':52}{''.join(f'{head:>12}' for head in heads)}"]
    for (path, field), counter in sorted(counts(cases).items()):
        lines.append(f"{path:22}{field:30}{''.join(f'{counter[head]:12}' for head in heads)}")
    return lines
