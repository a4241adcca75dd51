"""All that is asked of both frontends, in the order in which it is asked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.parity.case import CHAT, COMPLETIONS, Case, Kind
from tests.parity.combinations import combinations
from tests.parity.fields import OF_CHAT, OF_COMPLETIONS, SAMPLING, TAKEN_FOR, WRONG, Field

PROMPT_TEXT = "The cat sat"
PLAIN: Mapping[str, Mapping[str, Any]] = {
    COMPLETIONS: {"prompt": PROMPT_TEXT, "max_tokens": 5},
    CHAT: {"messages": [{"role": "user", "content": PROMPT_TEXT}]},
}
"""What each case is asked beside: the smallest request, of a few tokens."""


def cases_of(path: str, field: Field) -> Iterator[Case]:
    valued = [
        (Kind.DEFAULT, [field.default]),
        (Kind.EDGE, field.edges),
        (Kind.ERROR, field.errors),
        (Kind.NULL, [] if field.default is None else [None]),
    ]
    for kind, values in valued:
        for value in values:
            case = _case(path, field, kind, value)
            yield case
            if field.name != "stream":
                yield case.streamed()
    for value in WRONG.get(field.type, ()):
        yield _case(path, field, Kind.WRONG_TYPE, value)
    for value, meant in TAKEN_FOR.get(field.type, ()):
        case = _case(path, field, Kind.WRONG_TYPE, value)
        yield case._replace(meant={**case.body, field.name: meant})


def _case(path: str, field: Field, kind: Kind, value: Any) -> Case:
    name = f"{'chat' if path == CHAT else 'completions'}: {kind} {field.name} {_brief(value)}"
    return Case(name, path, {**PLAIN[path], **field.beside, field.name: value}, (field.name,), kind)


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:40]}…{len(text)}"


def corpus() -> Sequence[Case]:
    cases = [
        case
        for path, own in ((COMPLETIONS, OF_COMPLETIONS), (CHAT, OF_CHAT))
        for field in (*own, *SAMPLING)
        for case in cases_of(path, field)
    ]
    cases += [case for path, plain in PLAIN.items() for case in combinations(path, plain)]
    return cases


CORPUS = corpus()
