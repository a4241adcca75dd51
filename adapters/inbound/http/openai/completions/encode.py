"""A completion as OpenAI's JSON, whole or in chunks. Fields, order and nulls as vLLM 0.32 has them."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Raw, Struct

from adapters.inbound.http.openai.answer import Answer, Usage, chunk_head, ids_json, stream_usage, usage_frame
from adapters.inbound.http.openai.fragments import TokenDisplay, encode
from adapters.inbound.http.openai.logprobs import CompletionLogprobs
from application.services.generation import TextGeneration
from domain.generation import FinishReason, StopReason, TextDelta, TokenUsage


class Choice(Struct, kw_only=True):
    index: int = 0
    text: str
    logprobs: Raw | None
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    token_ids: Sequence[int] | None
    prompt_logprobs: None = None
    prompt_token_ids: Sequence[int] | None
    routed_experts: None = None


class CompletionBody(Struct, kw_only=True):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    service_tier: None = None
    system_fingerprint: None = None
    usage: Usage
    kv_transfer_params: None = None
    ec_transfer_params: None = None
    metrics: None = None


async def completion_body(
    generation: TextGeneration, answer: Answer, display: TokenDisplay, logprobs: int | None
) -> bytes:
    """Runs the generation to its end. `logprobs` is the request's; None shows no rows."""
    rows = None if logprobs is None else CompletionLogprobs(display)
    texts: list[str] = []
    token_ids: list[int] = []
    if generation.echo:
        texts.append(generation.echo.text)
        if rows:
            rows.add(generation.echo.scored)
    async for delta in generation:
        texts.append(delta.text)
        token_ids += delta.token_ids
        if rows:
            rows.add(delta.scored)
    choice = Choice(
        text="".join(texts),
        logprobs=Raw(rows.take()) if rows else None,
        finish_reason=delta.finish_reason,
        stop_reason=delta.stop_reason,
        token_ids=token_ids if answer.return_token_ids else None,
        prompt_token_ids=generation.prompt.token_ids if answer.return_token_ids else None,
    )
    return encode(
        CompletionBody(
            id=answer.id,
            created=answer.created,
            model=answer.model,
            choices=[choice],
            usage=Usage.of(generation.usage),
        )
    )


class CompletionChunks:
    """Frames of a streamed completion. With echo, the first one has the prompt before the first delta."""

    def __init__(self, generation: TextGeneration, answer: Answer, display: TokenDisplay, logprobs: int | None) -> None:
        self._answer = answer
        self._rows = None if logprobs is None else CompletionLogprobs(display)
        self._echo = generation.echo
        returns_prompt = answer.return_token_ids or generation.echo
        self._prompt_token_ids = generation.prompt.token_ids if returns_prompt else None
        self._head = chunk_head(answer, "text_completion")
        self._start = self._head + b'{"index":0,"text":'

    def opening(self) -> bytes:
        return b""

    def delta(self, delta: TextDelta, usage: TokenUsage) -> bytes:
        text, rows, answer = delta.text, self._rows, self._answer
        if self._echo:
            text = self._echo.text + text
            if rows:
                rows.add(self._echo.scored)
            self._echo = None
        elif not text and delta.finish_reason is None and not (delta.token_ids and (rows or answer.return_token_ids)):
            return b""
        if rows:
            rows.add(delta.scored)
        prompt_token_ids, self._prompt_token_ids = self._prompt_token_ids, None
        return b"".join(
            (
                self._start,
                encode(text),
                b',"logprobs":',
                rows.take() if rows else b"null",
                b',"finish_reason":',
                encode(delta.finish_reason),
                b',"stop_reason":',
                encode(delta.stop_reason),
                b',"prompt_token_ids":',
                ids_json(prompt_token_ids),
                b',"token_ids":',
                ids_json(delta.token_ids if answer.return_token_ids else None),
                b"}]",
                b"," + stream_usage(usage) + b"}" if answer.continuous_usage else b"",
                b"}\n\n",
            )
        )

    def closing(self, usage: TokenUsage) -> bytes:
        return usage_frame(self._head, usage) if self._answer.include_usage else b""
