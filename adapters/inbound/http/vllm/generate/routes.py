"""`POST /inference/v1/generate`, and what calls generations off."""

import msgspec
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

from adapters.inbound.http.body import BodyLimit, read_body
from adapters.inbound.http.departure import unless_gone
from adapters.inbound.http.endpoint import HttpRequest, post
from adapters.inbound.http.openai.exchange import TokenDisplays, answer_to, whole
from adapters.inbound.http.openai.frames import AnswerFrames
from adapters.inbound.http.openai.headers import scheduling_headers
from adapters.inbound.http.openai.rows import Rows
from adapters.inbound.http.sse import EventStream, SilenceLimit
from adapters.inbound.http.vllm.generate.encode import Form, GenerateChunks, generate_body
from adapters.inbound.http.vllm.generate.lower import lower
from adapters.inbound.http.vllm.generate.schema import AbortRequest, GenerateRequest
from application.model import ModelDefaults
from application.services.generate import GenerateTokens
from application.services.models import ServedModels
from application.services.running import Running
from domain.logprobs import WHOLE_VOCABULARY

_GENERATE = msgspec.json.Decoder(GenerateRequest)
_ABORT = msgspec.json.Decoder(AbortRequest)


@post("/inference/v1/generate")
async def generate(
    request: HttpRequest,
    generate_tokens: GenerateTokens,
    models: ServedModels,
    defaults: ModelDefaults,
    displays: TokenDisplays,
    body_limit: BodyLimit,
    silence_limit: SilenceLimit,
) -> ASGIApp:
    body = await read_body(request, _GENERATE, body_limit)
    model = models.resolve(body.model)
    answer = answer_to(request, body, "generate-tokens-", model, models.fingerprint)
    continuation = lower(body, answer.id, defaults, scheduling_headers(request.headers), model.adapter)
    choices = await unless_gone(request.departure, generate_tokens(continuation))  # what fails here is still a status
    params = body.sampling_params
    rows = Rows(
        display=displays.of(choices),
        prompt_display=displays.of_prompts,
        alternatives=params.logprobs if params.logprob_token_ids is None else WHOLE_VOCABULARY,
        prompt_alternatives=params.prompt_logprobs,
    )
    form = Form(rows, shows_text=body.output_mode == "text")
    if body.stream:
        return EventStream(AnswerFrames(choices, GenerateChunks(choices, answer, form)), silence_limit)
    return await whole(request, choices, generate_body(choices, answer, form))


@post("/inference/v1/abort_requests")
async def abort_requests(request: HttpRequest, running: Running, body_limit: BodyLimit) -> ASGIApp:
    return await _abort(request, running, body_limit)


@post("/abort_requests")
async def abort_requests_unguarded(request: HttpRequest, running: Running, body_limit: BodyLimit) -> ASGIApp:
    """The older path of it, which asks for no key."""
    return await _abort(request, running, body_limit)


async def _abort(request: HttpRequest, running: Running, body_limit: BodyLimit) -> ASGIApp:
    body = await read_body(request, _ABORT, body_limit)
    await running.abort(body.request_ids)
    return ASGIResponse(body=b"", status_code=200)
