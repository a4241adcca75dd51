"""`GET /metrics`: what is counted, as Prometheus reads it."""

from typing import Protocol

from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.endpoint import HttpRequest, get


class Exposition(Protocol):
    """Where the counts are kept."""

    def expose(self) -> bytes:
        """All of them in Prometheus' text format, version 0.0.4."""


@get("/metrics")
async def metrics(_: HttpRequest, exposition: Exposition) -> ASGIApp:
    return ASGIResponse(body=exposition.expose(), headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"})
