"""The paths of a server that is one part of several, where it was not told that it is."""

from litestar.types import ASGIApp

from adapters.inbound.http.endpoint import HttpRequest, post
from adapters.inbound.http.errors import NotPermitted

SCALE_OUT = [
    "/inference/v1/abort_requests",
    "/inference/v1/generate",
    "/v1/chat/completions/derender",
    "/v1/chat/completions/render",
    "/v1/completions/derender",
    "/v1/completions/render",
    "/v1/messages/render",
    "/v1/responses/render",
]
"""As vLLM has them. What is not built is closed all the same: whoever is told to open it finds nothing behind."""


@post(*SCALE_OUT)
async def closed(_: HttpRequest) -> ASGIApp:
    raise NotPermitted("Scale-out endpoints are disabled: the server was started without --enable-scale-out.")
