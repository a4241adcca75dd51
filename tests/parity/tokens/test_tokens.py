"""The same requests on the same engine: answers are alike, but where a row of docs/compatibility.md says otherwise."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.parity.model import write_model
from tests.parity.northbound import northbound
from tests.parity.tokens.cases import CASES, Case
from tests.parity.tokens.record import SERVER, answer_of, read_reference

COMPATIBILITY = Path(__file__).parents[3] / "docs" / "compatibility.md"
ANSWERS_OF_ITS_OWN = {"created", "system_fingerprint", "stream_state"}
"""Those of a time, and rows of their own."""

VLLMS_OWN = {"output_kind", "skip_clone", "skip_reading_prefix_cache", "_backend", "_backend_was_auto"}
Answer = Mapping[str, Any]


@pytest.fixture(scope="module")
def reference() -> Mapping[str, Answer]:
    return read_reference()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Answer]:
    return asyncio.run(_ask(tmp_path_factory.mktemp("parity") / "model"))


async def _ask(folder: Path) -> Mapping[str, Answer]:
    async with northbound(SERVER, write_model(folder)) as server:
        return {case.name: answer_of(await server.post(case.path, case.body)) for case in CASES}


def test_what_was_recorded_is_what_is_asked(reference: Mapping[str, Answer]) -> None:
    assert list(reference) == [case.name for case in CASES]


@pytest.mark.parametrize("case", [case for case in CASES if not case.deviates], ids=lambda case: case.name[:100])
def test_an_answer(case: Case, answers: Mapping[str, Answer], reference: Mapping[str, Answer]) -> None:
    assert not list(differences(shown(answers[case.name]), shown(reference[case.name])))


@pytest.mark.parametrize("row", sorted({case.deviates for case in CASES if case.deviates}))
def test_every_deviation_is_real(row: str, answers: Mapping[str, Answer], reference: Mapping[str, Answer]) -> None:
    of_row = [case.name for case in CASES if case.deviates == row]
    assert any(list(differences(shown(answers[name]), shown(reference[name]))) for name in of_row)


def test_every_deviation_is_a_row() -> None:
    rows = {line.split("|")[1].strip() for line in COMPATIBILITY.read_text().splitlines() if line.startswith("|")}
    assert {case.deviates for case in CASES} - {""} <= rows


def shown(answer: Answer) -> Any:
    """What of an answer is compared. Of a refusal it is the status: what it says is each server's own."""
    if answer["status"] >= 400:
        return {"status": answer["status"]}
    bodies = answer["events"] if "events" in answer else [answer["body"]]
    return {"status": answer["status"], "bodies": _joined([_plain(body) for body in bodies])}


def _plain(told: Any) -> Any:
    if isinstance(told, dict):
        kept = {name: _plain(value) for name, value in told.items() if name not in ANSWERS_OF_ITS_OWN | VLLMS_OWN}
        # of a form, vLLM tells what it is not as well
        return {name: value for name, value in kept.items() if name != "structured_outputs"} | (
            {"structured_outputs": _said(kept["structured_outputs"])} if kept.get("structured_outputs") else {}
        )
    return [_plain(each) for each in told] if isinstance(told, list) else told


def _said(form: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in form.items() if value not in (None, False)}


def _joined(bodies: list[Any]) -> list[Any]:
    """A server that is held up joins the chunks of a choice: they are compared joined."""
    joined: dict[Any, Any] = {}
    for place, body in enumerate(bodies):
        choices = body.get("choices") if isinstance(body, dict) else None
        if len(bodies) == 1 or not choices:
            joined[place + 1000] = body
            continue
        [choice] = choices
        before = joined.get(choice["index"])
        joined[choice["index"]] = body if before is None else _behind(before, body)
    return list(joined.values())


def _behind(before: Any, body: Any) -> Any:
    [one], [other] = before["choices"], body["choices"]
    rows = (one["logprobs"]["content"] + other["logprobs"]["content"]) if one["logprobs"] else None
    both = other | {
        "token_ids": one["token_ids"] + other["token_ids"],
        "logprobs": None if rows is None else {"content": rows},
    }
    if "text" in one:
        both["text"] = one["text"] + other["text"]
    return before | {"choices": [both], "usage": body.get("usage")}


def differences(ours: Any, theirs: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in ours.keys() | theirs.keys():
            yield from differences(ours.get(name, "-"), theirs.get(name, "-"), (*path, name))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, (*path, place))
    elif ours != theirs:
        yield path, ours, theirs
