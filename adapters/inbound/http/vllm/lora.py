"""`POST /v1/load_lora_adapter` and `POST /v1/unload_lora_adapter`: adapters that come and go while requests run.

A load is not given up when its client leaves: the engine would go on with it.
"""

import msgspec
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp
from msgspec import Struct

from adapters.inbound.http.body import BodyLimit, read_body
from adapters.inbound.http.endpoint import HttpRequest, post
from application.services.lora import LoraAdapters


class LoadAdapterRequest(Struct, kw_only=True):
    lora_name: str
    lora_path: str
    load_inplace: bool | None = None
    is_3d_lora_weight: bool | None = None


class UnloadAdapterRequest(Struct, kw_only=True):
    lora_name: str
    lora_int_id: int | None = None
    """Accepted and unused. Same as vLLM."""


_LOAD = msgspec.json.Decoder(LoadAdapterRequest)
_UNLOAD = msgspec.json.Decoder(UnloadAdapterRequest)


@post("/v1/load_lora_adapter")
async def load_lora_adapter(request: HttpRequest, lora_adapters: LoraAdapters, body_limit: BodyLimit) -> ASGIApp:
    body = await read_body(request, _LOAD, body_limit)
    await lora_adapters.load(
        body.lora_name, body.lora_path, is_3d=bool(body.is_3d_lora_weight), in_place=bool(body.load_inplace)
    )
    return _done(f"Success: LoRA adapter '{body.lora_name}' added successfully.")


@post("/v1/unload_lora_adapter")
async def unload_lora_adapter(request: HttpRequest, lora_adapters: LoraAdapters, body_limit: BodyLimit) -> ASGIApp:
    body = await read_body(request, _UNLOAD, body_limit)
    await lora_adapters.unload(body.lora_name)
    return _done(f"Success: LoRA adapter '{body.lora_name}' removed successfully.")


def _done(said: str) -> ASGIApp:
    return ASGIResponse(body=said.encode(), media_type="text/plain")
