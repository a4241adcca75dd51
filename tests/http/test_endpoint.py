"""What answers a route gets its parts when the application is built."""

from typing import Any

import pytest
from httpx import Response
from litestar import Litestar
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.cli.settings import HttpSettings
from adapters.inbound.http.endpoint import HttpRequest, get, post
from adapters.outbound.mock_engine.scripted import ScriptedEngine
from tests.http.serving import CHAT, application, client_of, question
from tests.http.serving import get as ask


@get("/greeting", "/welcome")
async def greeting(_: HttpRequest, words: bytes) -> ASGIApp:
    return ASGIResponse(body=words)


async def test_each_part_comes_by_its_name() -> None:
    app = Litestar([greeting.handler({"words": b"hello", "other": b"no"})], openapi_config=None, logging_config=None)
    for path in greeting.paths:
        assert (await ask(app, path)).content == b"hello"


def test_a_part_that_is_not_there_is_noticed_at_the_start() -> None:
    with pytest.raises(KeyError, match="words"):
        greeting.handler({"other": b"no"})


@post("/name")
async def name(request: HttpRequest) -> ASGIApp:
    return ASGIResponse(body=request.headers.get("x-name", "nobody").encode())


@pytest.mark.parametrize(
    ("headers", "told"),
    [([], b"nobody"), ([("X-Name", "a"), ("x-other", "b")], b"a"), ([("x-name", "b"), ("X-NAME", "a")], b"b")],
)
async def test_of_several_headers_by_one_name_the_first_counts(headers: list[tuple[str, str]], told: bytes) -> None:
    async with client_of(Litestar([name.handler({})], openapi_config=None, logging_config=None)) as client:
        assert (await client.post("/name", headers=headers)).content == told


def told_of(answer: Response) -> tuple[int, dict[str, str], bytes]:
    return answer.status_code, dict(answer.headers), answer.content


@pytest.mark.parametrize(
    "asked", [{"json": {"model": "m"}}, {"content": b"{"}, {"json": question(CHAT), "headers": {"host": 'a"b'}}]
)
async def test_what_fails_is_told_alike_however_the_way_was_found(asked: dict[str, Any]) -> None:
    """Litestar reads more paths than its routes have."""
    async with client_of(application(ScriptedEngine([]))) as client:
        answers = [told_of(await client.post(path, **asked)) for path in (CHAT, f"{CHAT}/")]

    assert answers[0] == answers[1]
    assert answers[0][0] == 400


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/"])
async def test_every_way_tells_who_may_read_the_answer(path: str) -> None:
    async with client_of(application(ScriptedEngine([]), settings=HttpSettings(allowed_origins=("*",)))) as client:
        answer = await client.get(path, headers={"origin": "http://here"})

    assert answer.headers["access-control-allow-origin"] == "*"
