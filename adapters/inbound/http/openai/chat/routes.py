"""`POST /v1/chat/completions`."""

import msgspec
from litestar.types import ASGIApp

from adapters.inbound.http.body import BodyLimit, read_body
from adapters.inbound.http.departure import unless_gone
from adapters.inbound.http.endpoint import HttpRequest, post
from adapters.inbound.http.openai.chat.encode import ChatChunks, ChatRows, chat_body
from adapters.inbound.http.openai.chat.lower import lower, prompt_logprobs, top_logprobs
from adapters.inbound.http.openai.chat.schema import ChatRequest
from adapters.inbound.http.openai.exchange import TokenDisplays, answer_to, whole
from adapters.inbound.http.openai.frames import AnswerFrames
from adapters.inbound.http.openai.headers import scheduling_headers
from adapters.inbound.http.sse import EventStream, SilenceLimit
from application.model import ModelDefaults
from application.services.chat import CompleteChat
from application.services.models import ServedModels
from domain.logprobs import WHOLE_VOCABULARY

_DECODER = msgspec.json.Decoder(ChatRequest)


@post("/v1/chat/completions")
async def chat_completions(
    request: HttpRequest,
    complete_chat: CompleteChat,
    models: ServedModels,
    defaults: ModelDefaults,
    displays: TokenDisplays,
    body_limit: BodyLimit,
    silence_limit: SilenceLimit,
) -> ASGIApp:
    body = await read_body(request, _DECODER, body_limit)
    model = models.resolve(body.model)
    answer = answer_to(request, body, "chatcmpl-", model, models.fingerprint)
    chat = lower(body, answer.id, defaults, scheduling_headers(request.headers), model.adapter)
    reply = await unless_gone(request.departure, complete_chat(chat))  # what fails here is still a status
    choices = reply.choices
    rows = ChatRows(
        display=displays.of(choices),
        prompt_display=displays.of_prompts,
        alternatives=top_logprobs(body) if body.logprob_token_ids is None else WHOLE_VOCABULARY,
        prompt_alternatives=prompt_logprobs(body),
    )
    if body.stream:
        return EventStream(AnswerFrames(choices, ChatChunks(reply, answer, rows)), silence_limit)
    return await whole(request, choices, chat_body(reply, answer, rows))
