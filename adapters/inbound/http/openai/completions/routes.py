"""`POST /v1/completions`."""

from typing import Any

import msgspec
from litestar import Request, post
from litestar.types import ASGIApp

from adapters.inbound.http.body import BodyLimit, read_body
from adapters.inbound.http.injection import Injected
from adapters.inbound.http.openai.completions.encode import CompletionChunks, completion_body
from adapters.inbound.http.openai.completions.lower import lower
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.exchange import TokenDisplays, answer_to, whole
from adapters.inbound.http.openai.frames import GenerationFrames
from adapters.inbound.http.sse import EventStream, unless_gone
from application.model import ModelDefaults
from application.services.completions import CompleteText
from application.services.models import ServedModels

_DECODER = msgspec.json.Decoder(CompletionRequest)


@post("/v1/completions", status_code=200)
async def completions(
    request: Request[Any, Any, Any],
    complete_text: Injected[CompleteText],
    models: Injected[ServedModels],
    defaults: Injected[ModelDefaults],
    displays: Injected[TokenDisplays],
    body_limit: Injected[BodyLimit],
) -> ASGIApp:
    body = await read_body(request, _DECODER, body_limit)
    answer = answer_to(request, body, "cmpl-", models.resolve(body.model))
    completion = lower(body, answer.id, defaults)
    generation = await unless_gone(request.receive, complete_text(completion))  # what fails here is still a status
    display = displays.of(generation)
    if body.stream:
        chunks = CompletionChunks(generation, answer, display, body.logprobs)
        return EventStream(GenerationFrames(generation, chunks))
    return await whole(request, generation, completion_body(generation, answer, display, body.logprobs))
