"""`POST /v1/chat/completions/render` and `POST /v1/completions/render`: the request, as tokens to generate from."""

import msgspec
from litestar.types import ASGIApp

from adapters.inbound.http.body import BodyLimit, read_body
from adapters.inbound.http.endpoint import HttpRequest, post
from adapters.inbound.http.json_response import json_response
from adapters.inbound.http.openai.chat.lower import lower as lower_chat
from adapters.inbound.http.openai.chat.schema import ChatRequest
from adapters.inbound.http.openai.completions.lower import lower as lower_completion
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.exchange import answer_to
from adapters.inbound.http.vllm.render.encode import rendered
from application.model import ModelDefaults
from application.services.models import ServedModels
from application.services.prepare import Prepare

_CHAT = msgspec.json.Decoder(ChatRequest)
_COMPLETION = msgspec.json.Decoder(CompletionRequest)


@post("/v1/chat/completions/render")
async def render_chat(
    request: HttpRequest,
    prepare: Prepare,
    models: ServedModels,
    defaults: ModelDefaults,
    body_limit: BodyLimit,
) -> ASGIApp:
    body = await read_body(request, _CHAT, body_limit)
    answer = answer_to(request, body, "chatcmpl-", models.resolve(body.model), None)
    chat = lower_chat(body, answer.id, defaults)
    return json_response(rendered(body, chat, await prepare.chat(chat), answer.id))


@post("/v1/completions/render")
async def render_completions(
    request: HttpRequest,
    prepare: Prepare,
    models: ServedModels,
    defaults: ModelDefaults,
    body_limit: BodyLimit,
) -> ASGIApp:
    body = await read_body(request, _COMPLETION, body_limit)
    answer = answer_to(request, body, "cmpl-", models.resolve(body.model), None)
    completion = lower_completion(body, answer.id, defaults)
    prepared = await prepare.completion(completion)
    ids = [answer.id] if len(prepared) == 1 else [one.request.request_id for one in prepared]
    return json_response([rendered(body, completion, one, one_id) for one, one_id in zip(prepared, ids, strict=True)])
