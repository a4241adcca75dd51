"""Northbound's answer as it must be, made of the tokens' ids and scores by the rules of docs/logprobs.md."""

from typing import Any

from tests.real_engine.answers import Json
from tests.real_engine.case import Case, Entry
from tests.real_engine.vocabulary import placeholder


def expected_answer(case: Case) -> Json:
    """What of it depends on how tokens are read and counted."""
    choices = [_choice(case, index) for index in range(len(case.readings))]
    per_prompt = case.question.body.get("n") or 1
    prompt_tokens = sum(len(reading.choice.prompt_ids) for reading in case.readings[::per_prompt])
    completion_tokens = sum(len(reading.choice.output_ids) for reading in case.readings)
    answer: Json = {
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "completion_tokens": completion_tokens,
        },
    }
    if case.question.is_chat:
        answer["prompt_logprobs"] = _prompt_logprobs(case, 0, case.as_ids)
    return answer


def as_far_as(expected: Json, answer: Json) -> tuple[Json, Json]:
    """Both, with the fields that both have: chunks tell less than whole answers, which tell more than is expected."""
    return _common(expected, answer), _common(answer, expected)


def _common(one: Any, other: Any, key: str = "") -> Any:
    match one, other:
        case dict(), dict() if key != "logprobs":
            return {name: _common(one[name], other[name], name) for name in sorted(one) if name in other}
        case list(), list() if key == "choices":
            return [_common(each, its_like) for each, its_like in zip(one, other, strict=True)]
    return one


def _choice(case: Case, index: int) -> Json:
    reading, source = case.readings[index], case.as_ids["choices"][index]
    text = reading.text
    if isinstance(source["stop_reason"], str):
        before, stop, _ = text.partition(source["stop_reason"])
        text = before + stop if case.question.body.get("include_stop_str_in_output") else before
    choice: Json = {
        "token_ids": reading.choice.output_ids if reading.choice.returns_ids else None,
        "logprobs": None,
    }
    if case.question.is_chat:
        choice["message"] = {"content": text}
    else:
        choice["text"], choice["prompt_logprobs"] = text, _prompt_logprobs(case, index, source)
    if source["logprobs"] is not None:
        choice["logprobs"] = _content(case, index) if case.question.is_chat else _columns(case, index)
    return choice


def _columns(case: Case, index: int) -> Json:
    """Of completions."""
    places = case.readings[index].places
    return {
        "text_offset": [place.offset for place in places],
        "token_logprobs": case.as_ids["choices"][index]["logprobs"]["token_logprobs"],
        "tokens": [placeholder(place.token_id) if case.shows_ids else place.text for place in places],
        "top_logprobs": [case.row(index, row).shown(case.shows_ids) or None for row in range(len(places))],
    }


def _content(case: Case, index: int) -> Json:
    """Of chat."""
    return {
        "content": [
            {
                **_shown(case, case.token(index, row), source["logprob"]),
                "top_logprobs": [_shown(case, entry, logprob) for entry, logprob in case.row(index, row).ours],
            }
            for row, source in enumerate(case.as_ids["choices"][index]["logprobs"]["content"])
        ]
    }


def _shown(case: Case, entry: Entry, logprob: float) -> Json:
    return {
        "token": placeholder(entry.token_id) if case.shows_ids else entry.text,
        "logprob": logprob,
        "bytes": list(case.vocabulary.bytes_of(entry.token_id)),
    }


def _prompt_logprobs(case: Case, index: int, source: Json) -> list[Json | None] | None:
    if source["prompt_logprobs"] is None:
        return None
    return [
        cells
        and {
            key: {**cell, "decoded_token": case.prompt_token(index, row, int(key)).text} for key, cell in cells.items()
        }
        for row, cells in enumerate(source["prompt_logprobs"])
    ]
