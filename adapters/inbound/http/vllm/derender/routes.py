"""`POST /v1/chat/completions/derender` and `POST /v1/completions/derender`: what was generated, as an answer."""

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from litestar.types import ASGIApp

from adapters.inbound.http.body import BodyLimit, decode_body, read_body
from adapters.inbound.http.endpoint import HttpRequest, post
from adapters.inbound.http.json_response import json_response
from adapters.inbound.http.openai.answer import Answer
from adapters.inbound.http.openai.chat.encode import chat_body
from adapters.inbound.http.openai.chat.schema import ChatRequest
from adapters.inbound.http.openai.completions.encode import completion_body
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.exchange import TokenDisplays, whole
from adapters.inbound.http.vllm.derender.encode import (
    ChatChunkBody,
    CompletionChunkBody,
    DerenderedChat,
    DerenderedCompletion,
    chat_choice,
    completion_choice,
    ends,
    state_after,
    usage_of,
)
from adapters.inbound.http.vllm.derender.lower import (
    cells,
    lower_chat,
    lower_chunk,
    lower_completion,
    lower_response,
    lower_responses,
    lower_state,
)
from adapters.inbound.http.vllm.derender.rows import chat_rows, completion_rows
from adapters.inbound.http.vllm.derender.schema import (
    DerenderChat,
    DerenderChatChunk,
    DerenderCompletion,
    DerenderCompletionChunk,
    Form,
    Generated,
    StreamState,
)
from application.model import ModelDefaults
from application.services.aside import CELL, one_by_one
from application.services.derender import Derender
from application.services.models import ServedModels

_RAW: msgspec.json.Decoder[Any] = msgspec.json.Decoder(msgspec.Raw)
_FORM = msgspec.json.Decoder(Form)
_CHAT = msgspec.json.Decoder(DerenderChat)
_CHAT_CHUNK = msgspec.json.Decoder(DerenderChatChunk)
_COMPLETION = msgspec.json.Decoder(DerenderCompletion)
_COMPLETION_CHUNK = msgspec.json.Decoder(DerenderCompletionChunk)

Whole = TypeVar("Whole")
Part = TypeVar("Part")
Done = TypeVar("Done")

BYTES: Final = 16
"""Of JSON, that are decoded as fast as a character is tokenised."""


@post("/v1/chat/completions/derender")
async def derender_chat(
    request: HttpRequest,
    derender: Derender,
    models: ServedModels,
    defaults: ModelDefaults,
    displays: TokenDisplays,
    body_limit: BodyLimit,
) -> ASGIApp:
    body = await _read(request, body_limit, _CHAT, _CHAT_CHUNK)
    if isinstance(body, DerenderChatChunk):
        return json_response(await _chat_chunk(body, derender, models, defaults, displays))
    answer = _answer(models, body.model, body.generate_response, body.chat_request)
    replay = await _aside(
        [body.generate_response],
        lambda: lower_response(body.generate_response, body.prompt_tokens, body.prompt_token_ids),
    )
    reply = await derender.chat(lower_chat(body.chat_request, answer.id, defaults), replay)
    rows = chat_rows(body.chat_request, replay, reply.choices, displays)
    return await whole(request, reply.choices, chat_body(reply, answer, rows))


@post("/v1/completions/derender")
async def derender_completions(
    request: HttpRequest,
    derender: Derender,
    models: ServedModels,
    defaults: ModelDefaults,
    displays: TokenDisplays,
    body_limit: BodyLimit,
) -> ASGIApp:
    body = await _read(request, body_limit, _COMPLETION, _COMPLETION_CHUNK)
    if isinstance(body, DerenderCompletionChunk):
        return json_response(await _completion_chunk(body, derender, models, defaults, displays))
    replays = await _aside(body.generate_responses, lambda: lower_responses(body))
    answer = _answer(models, body.model, body.generate_responses[0], body.completion_request)
    choices = await derender.completion(lower_completion(body.completion_request, answer.id, defaults), replays)
    rows = completion_rows(body.completion_request, replays, choices, displays)
    return await whole(request, choices, completion_body(choices, answer, rows))


async def _chat_chunk(
    body: DerenderChatChunk,
    derender: Derender,
    models: ServedModels,
    defaults: ModelDefaults,
    displays: TokenDisplays,
) -> DerenderedChat:
    generated, state = body.generate_chunk, body.stream_state or StreamState()
    answer = _answer(models, body.model, generated, body.chat_request)
    chunk = ChatChunkBody(
        id=answer.id,
        created=answer.created,
        model=answer.model,
        choices=[],
        usage=usage_of(generated.usage, body.prompt_tokens, tells_details=derender.tells_prompt_details),
        system_fingerprint=answer.fingerprint if ends(generated) else None,
    )
    replay = await _aside([generated], lambda: lower_chunk(body))
    chat = lower_chat(body.chat_request, answer.id, defaults)
    if not generated.choices or state.stopped_by is not None:
        return DerenderedChat(chunk=chunk, stream_state=state)
    reply, step = await derender.chat_chunk(chat, replay, lower_state(body.stream_state))
    rows = chat_rows(body.chat_request, replay, step.choices, displays)
    is_first = not state.role_sent
    chunk.choices = [
        await _aside(
            [generated],
            lambda: chat_choice(reply, step, generated.choices[0].index, answer, rows, is_first=is_first),
        )
    ]
    if is_first:
        chunk.prompt_token_ids = replay.prompt_token_ids if answer.return_token_ids else None
        chunk.prompt_text = reply.prompt_text
    return DerenderedChat(chunk=chunk, stream_state=state_after(step.state))


async def _completion_chunk(
    body: DerenderCompletionChunk,
    derender: Derender,
    models: ServedModels,
    defaults: ModelDefaults,
    displays: TokenDisplays,
) -> DerenderedCompletion:
    generated, state = body.generate_chunk, body.stream_state or StreamState()
    answer = _answer(models, body.model, generated, body.completion_request)
    replay = await _aside([generated], lambda: lower_chunk(body))
    completion = lower_completion(body.completion_request, answer.id, defaults)
    chunk = CompletionChunkBody(
        id=answer.id,
        created=answer.created,
        model=answer.model,
        choices=[],
        usage=usage_of(
            generated.usage,
            body.prompt_tokens,
            tells_details=derender.tells_prompt_details,
            prompt_only=completion.output.prompt_only,
        ),
        system_fingerprint=answer.fingerprint if ends(generated) else None,
    )
    if not generated.choices or state.stopped_by is not None:
        return DerenderedCompletion(chunk=chunk, stream_state=state)
    step = await derender.completion_chunk(completion, replay, lower_state(body.stream_state))
    rows = completion_rows(body.completion_request, [replay], step.choices, displays)
    is_first = body.stream_state is None
    chunk.choices = [
        await _aside(
            [generated],
            lambda: completion_choice(step, generated.choices[0].index, answer, rows, is_first=is_first),
        )
    ]
    return DerenderedCompletion(chunk=chunk, stream_state=state_after(step.state))


async def _read(
    request: HttpRequest,
    limit: BodyLimit,
    whole_decoder: msgspec.json.Decoder[Whole],
    chunk_decoder: msgspec.json.Decoder[Part],
) -> Whole | Part:
    body = bytes(await read_body(request, _RAW, limit))

    def decoded() -> Whole | Part:
        if decode_body(_FORM, body).stream:
            return decode_body(chunk_decoder, body)
        return decode_body(whole_decoder, body)

    return await one_by_one(len(body) // BYTES, decoded)


async def _aside(generated: Sequence[Generated], work: Callable[[], Done]) -> Done:
    """What `work` on all their scores gives, with many holding nobody up."""
    return await one_by_one(CELL * sum(map(cells, generated)), work)


def _answer(
    models: ServedModels, model: str | None, generated: Generated, request: ChatRequest | CompletionRequest | None
) -> Answer:
    """Its id is that of what was generated. Raises ModelNotFound."""
    return Answer(
        id=generated.request_id or secrets.token_hex(8),
        created=int(time.time()),
        model=models.resolve(model).name,
        fingerprint=models.fingerprint,
        return_token_ids=request is not None and bool(request.return_token_ids),
    )
