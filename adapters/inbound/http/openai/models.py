"""`GET /v1/models`."""

import secrets
from typing import Literal

from litestar.types import ASGIApp
from msgspec import Struct

from adapters.inbound.http.endpoint import HttpRequest, get
from adapters.inbound.http.json_response import json_response
from application.services.models import ServedModels


class Permission(Struct, kw_only=True):
    """What vLLM says of every model."""

    id: str
    object: Literal["model_permission"] = "model_permission"
    created: int
    allow_create_engine: bool = False
    allow_sampling: bool = True
    allow_logprobs: bool = True
    allow_search_indices: bool = False
    allow_view: bool = True
    allow_fine_tuning: bool = False
    organization: str = "*"
    group: None = None
    is_blocking: bool = False


class Card(Struct, kw_only=True):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "northbound"
    root: str
    parent: str | None
    max_model_len: int | None
    permission: list[Permission]


class ModelList(Struct, kw_only=True):
    object: Literal["list"] = "list"
    data: list[Card]


@get("/v1/models")
async def list_models(_: HttpRequest, models: ServedModels) -> ASGIApp:
    cards = [
        Card(
            id=card.id,
            created=card.created,
            root=card.root,
            parent=card.parent,
            max_model_len=card.max_model_len,
            permission=[Permission(id=f"modelperm-{secrets.token_hex(8)}", created=card.created)],
        )
        for card in models.cards()
    ]
    return json_response(ModelList(data=cards))
