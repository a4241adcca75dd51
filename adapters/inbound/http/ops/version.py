"""`GET /version`: the engine's under the name that vLLM's clients read, and this server's own."""

from importlib.metadata import version as installed

from litestar.types import ASGIApp
from msgspec import Struct

from adapters.inbound.http.endpoint import HttpRequest, get
from adapters.inbound.http.json_response import json_response
from application.ports.engine import EngineCore


class Versions(Struct):
    version: str
    northbound_version: str


@get("/version")
async def version(_: HttpRequest, engine: EngineCore) -> ASGIApp:
    return json_response(Versions(engine.version, installed("northbound")))
