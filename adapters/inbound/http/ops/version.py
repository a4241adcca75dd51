"""`GET /version`: the engine's under the name that vLLM's clients read, and this server's own."""

from importlib.metadata import version as installed

import msgspec
from litestar import get
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp
from msgspec import Struct

from adapters.inbound.http.injection import Injected
from application.ports.engine import EngineCore


class Versions(Struct):
    version: str
    northbound_version: str


@get("/version")
async def version(engine: Injected[EngineCore]) -> ASGIApp:
    body = msgspec.json.encode(Versions(engine.version, installed("northbound")))
    return ASGIResponse(body=body, media_type="application/json")
