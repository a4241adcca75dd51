"""A chat completion as OpenAI's JSON, whole or in chunks. Fields, order and nulls as vLLM 0.32 has them."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Raw, Struct

from adapters.inbound.http.openai.answer import Answer, Usage, chunk_head, ids_json, stream_usage, usage_frame
from adapters.inbound.http.openai.fragments import TokenDisplay, encode
from adapters.inbound.http.openai.logprobs import ChatLogprobs
from application.services.generation import TextGeneration
from domain.generation import FinishReason, StopReason, TextDelta, TokenUsage


class AssistantMessage(Struct, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None
    annotations: None = None
    audio: None = None
    function_call: None = None
    reasoning: None = None


class Choice(Struct, kw_only=True):
    index: int = 0
    message: AssistantMessage
    logprobs: Raw | None
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    token_ids: Sequence[int] | None
    routed_experts: None = None


class ChatBody(Struct, kw_only=True):
    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    service_tier: None = None
    system_fingerprint: None = None
    usage: Usage
    prompt_logprobs: None = None
    prompt_token_ids: Sequence[int] | None
    prompt_text: None = None
    kv_transfer_params: None = None
    ec_transfer_params: None = None
    metrics: None = None


async def chat_body(
    generation: TextGeneration, answer: Answer, display: TokenDisplay, top_logprobs: int | None
) -> bytes:
    """Runs the generation to its end. `top_logprobs` is how many alternatives each row shows; None shows no rows."""
    rows = None if top_logprobs is None else ChatLogprobs(display, top_logprobs)
    texts: list[str] = []
    token_ids: list[int] = []
    async for delta in generation:
        texts.append(delta.text)
        token_ids += delta.token_ids
        if rows:
            rows.add(delta.scored)
    choice = Choice(
        message=AssistantMessage(content="".join(texts)),
        logprobs=Raw(rows.take()) if rows else None,
        finish_reason=delta.finish_reason,
        stop_reason=delta.stop_reason,
        token_ids=token_ids if answer.return_token_ids else None,
    )
    return encode(
        ChatBody(
            id=answer.id,
            created=answer.created,
            model=answer.model,
            choices=[choice],
            usage=Usage.of(generation.usage),
            prompt_token_ids=generation.prompt.token_ids if answer.return_token_ids else None,
        )
    )


class ChatChunks:
    """Frames of a streamed chat completion: the role first, then what the engine produces."""

    def __init__(
        self, generation: TextGeneration, answer: Answer, display: TokenDisplay, top_logprobs: int | None
    ) -> None:
        self._answer = answer
        self._rows = None if top_logprobs is None else ChatLogprobs(display, top_logprobs)
        self._prompt_token_ids = generation.prompt.token_ids if answer.return_token_ids else None
        self._opening_usage = TokenUsage(len(generation.prompt.token_ids), 0)
        self._head = chunk_head(answer, "chat.completion.chunk")
        self._start = self._head + b'{"index":0,"delta":{"content":'

    def opening(self) -> bytes:
        return b"".join(
            (
                self._head,
                b'{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]',
                self._usage(self._opening_usage),
                b',"prompt_token_ids":',
                ids_json(self._prompt_token_ids),
                b',"prompt_text":null}\n\n',
            )
        )

    def delta(self, delta: TextDelta, usage: TokenUsage) -> bytes:
        rows, finish_reason, returns_ids = self._rows, delta.finish_reason, self._answer.return_token_ids
        if not delta.text and finish_reason is None and not (delta.token_ids and (rows or returns_ids)):
            return b""
        if rows:
            rows.add(delta.scored)
        return b"".join(
            (
                self._start,
                encode(delta.text),
                b'},"logprobs":',
                rows.take() if rows else b"null",
                b',"finish_reason":',
                encode(finish_reason),
                b"" if finish_reason is None else b',"stop_reason":' + encode(delta.stop_reason),
                b',"token_ids":',
                ids_json(delta.token_ids if returns_ids else None),
                b"}]",
                self._usage(usage),
                b"}\n\n",
            )
        )

    def closing(self, usage: TokenUsage) -> bytes:
        return usage_frame(self._head, usage) if self._answer.include_usage else b""

    def _usage(self, usage: TokenUsage) -> bytes:
        if not self._answer.continuous_usage:
            return b""
        return b"," + stream_usage(usage) + b',"completion_tokens_details":null}'
