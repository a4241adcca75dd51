"""`GET /health`: whether the engine is alive, in the status alone."""

from typing import Any

from litestar import Request
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.endpoint import get
from application.ports.engine import EngineCore


@get("/health")
async def health(_: Request[Any, Any, Any], engine: EngineCore) -> ASGIApp:
    return ASGIResponse(body=b"", status_code=200 if engine.is_alive else 503)
