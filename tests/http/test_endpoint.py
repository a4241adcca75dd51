"""What answers a route gets its parts when the application is built."""

import pytest
from litestar import Litestar
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.endpoint import HttpRequest, get, post
from tests.http.serving import client_of
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
