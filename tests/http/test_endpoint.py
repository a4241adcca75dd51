"""What answers a route gets its parts when the application is built."""

from typing import Any

import pytest
from litestar import Litestar, Request
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.endpoint import get
from tests.http.serving import get as ask


@get("/greeting", "/welcome")
async def greeting(_: Request[Any, Any, Any], words: bytes) -> ASGIApp:
    return ASGIResponse(body=words)


async def test_each_part_comes_by_its_name() -> None:
    app = Litestar([greeting.handler({"words": b"hello", "other": b"no"})], openapi_config=None)
    for path in greeting.paths:
        assert (await ask(app, path)).content == b"hello"


def test_a_part_that_is_not_there_is_noticed_at_the_start() -> None:
    with pytest.raises(KeyError, match="words"):
        greeting.handler({"other": b"no"})
