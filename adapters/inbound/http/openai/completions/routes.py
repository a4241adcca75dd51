"""`POST /v1/completions`."""

import msgspec
from litestar.types import ASGIApp

from adapters.inbound.http.body import BodyLimit, read_body
from adapters.inbound.http.departure import unless_gone
from adapters.inbound.http.endpoint import HttpRequest, post
from adapters.inbound.http.openai.completions.encode import CompletionChunks, CompletionRows, completion_body
from adapters.inbound.http.openai.completions.lower import lower, prompt_logprobs
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.exchange import TokenDisplays, answer_to, whole
from adapters.inbound.http.openai.frames import AnswerFrames
from adapters.inbound.http.openai.headers import scheduling_headers
from adapters.inbound.http.sse import EventStream, SilenceLimit
from application.model import ModelDefaults
from application.services.completions import CompleteText
from application.services.models import ServedModels
from domain.logprobs import WHOLE_VOCABULARY

_DECODER = msgspec.json.Decoder(CompletionRequest)


@post("/v1/completions")
async def completions(
    request: HttpRequest,
    complete_text: CompleteText,
    models: ServedModels,
    defaults: ModelDefaults,
    displays: TokenDisplays,
    body_limit: BodyLimit,
    silence_limit: SilenceLimit,
) -> ASGIApp:
    body = await read_body(request, _DECODER, body_limit)
    model = models.resolve(body.model)
    answer = answer_to(request, body, "cmpl-", model, models.fingerprint)
    completion = lower(body, answer.id, defaults, scheduling_headers(request.headers), model.adapter)
    choices = await unless_gone(request.departure, complete_text(completion))  # what fails here is still a status
    rows = CompletionRows(
        display=displays.of(choices),
        prompt_display=displays.of_prompts,
        alternatives=body.logprobs,
        output_alternatives=(body.logprobs or 0) if body.logprob_token_ids is None else WHOLE_VOCABULARY,
        prompt_alternatives=prompt_logprobs(body),
    )
    if body.stream:
        return EventStream(AnswerFrames(choices, CompletionChunks(choices, answer, rows)), silence_limit)
    return await whole(request, choices, completion_body(choices, answer, rows))
