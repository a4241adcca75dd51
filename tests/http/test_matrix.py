"""The rule: a request's own value, else the server's default; at every level, on both endpoints, streamed and not."""

from typing import Any

import httpx
import pytest

from tests.http.answers import answer, chunks
from tests.http.matrix import CASES, ENDPOINTS, FALSE, TRUE, Case, Endpoint, engine
from tests.http.serving import application, post, question


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_token_strings_at_every_level(case: Case) -> None:
    response = await post(application(engine(), flag=case.flag), case.endpoint.path, case.body)

    case.check(answer(response))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_the_display_changes_nothing_but_token_strings(endpoint: Endpoint, stream: bool) -> None:
    """Not ids, bytes, offsets, numbers, text, chunk borders or order: contract 1.3."""
    body = question(endpoint.path, "ab", stream=stream, return_token_ids=True, request_id="r", **endpoint.fields)
    app = application(engine())
    by_text = await post(app, endpoint.path, body | FALSE)
    by_id = await post(app, endpoint.path, body | TRUE)

    assert by_text.content != by_id.content
    assert without_token_strings(parsed(by_text)) == without_token_strings(parsed(by_id))


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_without_logprobs_there_is_nothing_to_show(endpoint: Endpoint) -> None:
    body = question(endpoint.path, "ab", request_id="r", return_token_ids=True, echo="echo" in endpoint.fields)
    app = application(engine(), flag=True)

    by_text, by_id = [(await post(app, endpoint.path, body | field)).json() for field in (FALSE, TRUE)]

    assert by_text | {"created": 0} == by_id | {"created": 0}


def parsed(response: httpx.Response) -> Any:
    return chunks(response) if "event-stream" in response.headers["content-type"] else response.json()


def without_token_strings(value: Any) -> Any:
    """The same JSON with each token string, value or key, replaced by its number in the order of appearance."""
    if isinstance(value, list):
        return [without_token_strings(item) for item in value]
    if not isinstance(value, dict):
        return value
    blank: dict[str, Any] = {}
    for name, item in value.items():
        if name == "created":
            continue
        if name == "token":
            blank[name] = "…"
        elif name == "tokens":
            blank[name] = ["…" for _ in item]
        elif name == "top_logprobs" and "tokens" in value:
            blank[name] = [None if position is None else list(position.values()) for position in item]
        else:
            blank[name] = without_token_strings(item)
    return blank
