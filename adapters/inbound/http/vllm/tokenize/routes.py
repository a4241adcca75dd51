"""`POST /tokenize`, `POST /detokenize` and `GET /tokenizer_info`."""

import json
from typing import Any

import msgspec
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.body import BodyLimit, read_body
from adapters.inbound.http.endpoint import HttpRequest, get, post
from adapters.inbound.http.json_response import json_response
from adapters.inbound.http.vllm.tokenize.encode import Detokenized, Tokenized
from adapters.inbound.http.vllm.tokenize.lower import lower
from adapters.inbound.http.vllm.tokenize.schema import DetokenizeRequest, TokenizeRequest
from application.model import ModelDefaults
from application.services.models import ServedModels
from application.services.tokenize import Tokenize

_TOKENIZE = msgspec.json.Decoder(TokenizeRequest)
_DETOKENIZE = msgspec.json.Decoder(DetokenizeRequest)


class TokenizerConfiguration(dict[str, Any]):
    """What the tokenizer's own configuration says, as JSON has it."""


@post("/tokenize")
async def tokenize(
    request: HttpRequest,
    tokenizing: Tokenize,
    models: ServedModels,
    defaults: ModelDefaults,
    body_limit: BodyLimit,
) -> ASGIApp:
    body = await read_body(request, _TOKENIZE, body_limit)
    models.resolve(body.model)
    prompt = await tokenizing(lower(body, defaults))
    return json_response(
        Tokenized(
            count=len(prompt.token_ids),
            max_model_len=tokenizing.max_model_len,
            tokens=prompt.token_ids,
            token_strs=await tokenizing.entries(prompt.token_ids) if body.return_token_strs else None,
        )
    )


@post("/detokenize")
async def detokenize(
    request: HttpRequest,
    tokenizing: Tokenize,
    models: ServedModels,
    body_limit: BodyLimit,
) -> ASGIApp:
    body = await read_body(request, _DETOKENIZE, body_limit)
    models.resolve(body.model)
    return json_response(Detokenized(prompt=await tokenizing.text_of(body.tokens, "tokens")))


@get("/tokenizer_info")
async def tokenizer_info(_: HttpRequest, tokenizer_configuration: TokenizerConfiguration) -> ASGIApp:
    # a tokenizer's own length limit may be beyond 64 bits
    return ASGIResponse(body=json.dumps(tokenizer_configuration).encode(), media_type="application/json")
