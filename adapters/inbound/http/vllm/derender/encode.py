"""One chunk of an answer, and the state for the next, as JSON. Fields, order and nulls as vLLM 0.32 has them."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Raw, Struct

from adapters.inbound.http.openai.answer import Answer, Usage, raw
from adapters.inbound.http.openai.chat.encode import ChatRows
from adapters.inbound.http.openai.completions.encode import ChoiceEncoder, CompletionRows
from adapters.inbound.http.vllm.derender.schema import Generated, GeneratedUsage, StreamState
from application.services.chat import Reply
from application.services.derender import Chunk
from domain.detokenizer import ReadingState
from domain.generation import FinishReason, StopReason


class MessageInPart(Struct, kw_only=True):
    role: str | None
    content: str | None
    reasoning: None = None


class ChatChoiceInPart(Struct, kw_only=True):
    index: int
    delta: MessageInPart
    logprobs: Raw | None
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    token_ids: Sequence[int] | None


class ChatChunkBody(Struct, kw_only=True):
    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: Sequence[ChatChoiceInPart]
    usage: Usage | None
    system_fingerprint: str | None
    prompt_token_ids: Sequence[int] | None = None
    prompt_text: str | None = None
    metrics: None = None


class CompletionChoiceInPart(Struct, kw_only=True):
    index: int
    text: str
    logprobs: Raw | None
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    prompt_token_ids: Sequence[int] | None
    token_ids: Sequence[int] | None


class CompletionChunkBody(Struct, kw_only=True):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: Sequence[CompletionChoiceInPart]
    usage: Usage | None
    system_fingerprint: str | None
    metrics: None = None


class DerenderedChat(Struct, kw_only=True):
    chunk: ChatChunkBody
    stream_state: StreamState


class DerenderedCompletion(Struct, kw_only=True):
    chunk: CompletionChunkBody
    stream_state: StreamState


def usage_of(
    told: GeneratedUsage | None, prompt_tokens: int | None, *, tells_details: bool, prompt_only: bool = False
) -> Usage | None:
    if told is None:
        return None
    prompt = told.prompt_tokens if prompt_tokens is None else prompt_tokens
    completion = 0 if prompt_only else told.completion_tokens or 0
    return Usage(
        prompt_tokens=prompt,
        total_tokens=prompt + completion,
        completion_tokens=completion,
        prompt_tokens_details=told.prompt_tokens_details if tells_details else None,
    )


def ends(generated: Generated) -> bool:
    """Whether it is the last of a choice, or of all."""
    return all(choice.finish_reason is not None for choice in generated.choices)


def state_after(state: ReadingState) -> StreamState:
    return StreamState(
        role_sent=True,
        unread=state.unread,
        context=state.context,
        text_offset=state.offset,
        held=state.held,
        stopped_by=state.matched,
        seen=state.seen,
    )


def chat_choice(
    reply: Reply, chunk: Chunk, index: int, answer: Answer, rows: ChatRows, *, is_first: bool
) -> ChatChoiceInPart:
    delta, logprobs = chunk.delta, rows.entries()
    if logprobs:
        logprobs.add(delta.scored)
    content = reply.echo + delta.text if is_first else delta.text
    return ChatChoiceInPart(
        index=index,
        delta=MessageInPart(role=reply.role if is_first else None, content=content or None),
        logprobs=raw(logprobs.take() if logprobs else None),
        finish_reason=delta.finish_reason,
        stop_reason=delta.stop_reason,
        token_ids=delta.token_ids if answer.return_token_ids else None,
    )


def completion_choice(
    chunk: Chunk, index: int, answer: Answer, rows: CompletionRows, *, is_first: bool
) -> CompletionChoiceInPart:
    delta, generation = chunk.delta, chunk.choices.generations[0]
    encoder = ChoiceEncoder(index, generation, rows)
    text = encoder.add(delta)
    shows_prompt = is_first and (answer.return_token_ids or generation.echo is not None)
    return CompletionChoiceInPart(
        index=index,
        text=text,
        logprobs=raw(encoder.logprobs_json()),
        finish_reason=delta.finish_reason,
        stop_reason=delta.stop_reason,
        prompt_token_ids=generation.prompt.token_ids if shows_prompt else None,
        token_ids=delta.token_ids if answer.return_token_ids else None,
    )
