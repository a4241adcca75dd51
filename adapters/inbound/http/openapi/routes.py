"""`GET /openapi.json`, and `/docs` and `/redoc`, which show it to people."""

from collections.abc import Sequence
from functools import cached_property

import msgspec
from litestar import MediaType
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.endpoint import HttpRequest, get

CDN = "https://cdn.jsdelivr.net/npm"
"""The pages come with no scripts of their own. Same as FastAPI."""

SWAGGER = f"""<!doctype html>
<title>Northbound</title>
<link rel="stylesheet" href="{CDN}/swagger-ui-dist@5/swagger-ui.css">
<div id="docs"></div>
<script src="{CDN}/swagger-ui-dist@5/swagger-ui-bundle.js"></script>
<script>SwaggerUIBundle({{url: "openapi.json", dom_id: "#docs"}})</script>
"""

REDOC = f"""<!doctype html>
<title>Northbound</title>
<redoc spec-url="openapi.json"></redoc>
<script src="{CDN}/redoc@2/bundles/redoc.standalone.js"></script>
"""


class ApiDocument:
    """The OpenAPI document of a server, made when it is first asked for."""

    def __init__(self, served: Sequence[str], root_path: str | None = None, *, asks_for_key: bool = False) -> None:
        """`served` are the paths that there are; some of them need no description."""
        self._served = served
        self._root_path = root_path
        self._asks_for_key = asks_for_key

    @cached_property
    def json(self) -> bytes:
        from adapters.inbound.http.openapi.document import build  # few servers are ever asked

        return msgspec.json.encode(build(self._served, self._root_path, self._asks_for_key))


@get("/openapi.json")
async def openapi_json(_: HttpRequest, api_document: ApiDocument) -> ASGIApp:
    return ASGIResponse(body=api_document.json, media_type="application/json")


@get("/docs")
async def docs(_: HttpRequest) -> ASGIApp:
    return ASGIResponse(body=SWAGGER.encode(), media_type=MediaType.HTML)


@get("/redoc")
async def redoc(_: HttpRequest) -> ASGIApp:
    return ASGIResponse(body=REDOC.encode(), media_type=MediaType.HTML)
