"""`GET /health`: whether the engine is alive, in the status alone."""

from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.endpoint import HttpRequest, get
from application.ports.engine import EngineCore


@get("/health")
async def health(_: HttpRequest, engine: EngineCore) -> ASGIApp:
    return ASGIResponse(body=b"", status_code=200 if engine.is_alive else 503)
