"""A chat completion as OpenAI's JSON, whole or in chunks. Fields, order and nulls as vLLM 0.32 has them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Raw, Struct

from adapters.inbound.http.openai.answer import (
    Answer,
    Metrics,
    Usage,
    chunk_head,
    fingerprint_json,
    ids_json,
    stream_usage,
    usage_frame,
)
from adapters.inbound.http.openai.encoding import NULL, encode
from adapters.inbound.http.openai.ended import Ended, body_of, rows_into
from adapters.inbound.http.openai.logprobs import ChatEntries
from adapters.inbound.http.openai.rows import Rows
from application.services.chat import Reply
from domain.generation import FinishReason, StopReason, TextDelta, TokenUsage


class AssistantMessage(Struct, kw_only=True):
    role: str
    content: str
    refusal: None = None
    annotations: None = None
    audio: None = None
    function_call: None = None
    reasoning: None = None


class ChatChoice(Struct, kw_only=True):
    index: int
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
    choices: list[ChatChoice]
    service_tier: None = None
    system_fingerprint: str | None
    usage: Usage
    prompt_logprobs: Raw | None
    prompt_token_ids: Sequence[int] | None
    prompt_text: str | None
    kv_transfer_params: Mapping[str, Any] | None
    ec_transfer_params: Mapping[str, Any] | None
    metrics: Metrics | None


class ChatRows(Rows, frozen=True):
    def entries(self) -> ChatEntries | None:
        """Of one choice, to be added to."""
        return None if self.alternatives is None else ChatEntries(self.display.chat, self.alternatives)


async def chat_body(reply: Reply, answer: Answer, rows: ChatRows) -> bytes:
    """Runs every choice to its end."""
    choices = reply.choices
    logprobs = [rows.entries() for _ in choices.generations]
    first = choices.generations[0]

    def whole(ended: Sequence[Ended]) -> bytes:
        return encode(
            ChatBody(
                id=answer.id,
                created=answer.created,
                model=answer.model,
                choices=[
                    ChatChoice(
                        index=index,
                        message=AssistantMessage(role=reply.role, content=reply.echo + choice.text),
                        logprobs=Raw(scores.take()) if scores else None,
                        finish_reason=choice.finish_reason,
                        stop_reason=choice.stop_reason,
                        token_ids=choice.token_ids if answer.return_token_ids else None,
                    )
                    for index, (choice, scores) in enumerate(zip(ended, logprobs, strict=True))
                ],
                system_fingerprint=answer.fingerprint,
                usage=Usage.of(choices, is_chat=True),
                prompt_logprobs=rows.prompt_logprobs(first),
                prompt_token_ids=first.prompt.token_ids or None if answer.return_token_ids else None,
                prompt_text=reply.prompt_text,
                kv_transfer_params=choices.transfer.kv,
                ec_transfer_params=choices.transfer.ec,
                metrics=Metrics.of(choices),
            )
        )

    return await body_of(choices, rows_into(logprobs), whole)


class ChatChunks:
    """Frames of a streamed chat completion: the role of each choice first, the echo if there is one, then what the
    engine produces."""

    def __init__(self, reply: Reply, answer: Answer, rows: ChatRows) -> None:
        choices = reply.choices
        count = len(choices.generations)
        self._reply = reply
        self._choices = choices
        self._answer = answer
        self._returns_ids = answer.return_token_ids
        self._logprobs = rows.display.chat
        self._top_logprobs = rows.alternatives
        self._shows_tokens = self._returns_ids or rows.alternatives is not None
        self._prompt = choices.generations[0].prompt.token_ids
        self._head = chunk_head(answer, "chat.completion.chunk")
        self._starts = [self._head + b'{"index":%d,"delta":{"content":' % index for index in range(count)]
        self._usual: list[bytes] | None = None
        """Formats of what is in between, of text and rows; None where more is shown than those."""
        if not (answer.return_token_ids or choices.usage_shown.so_far):
            end = b'%b},"logprobs":%b,"finish_reason":null,"token_ids":null}]}\n\n'
            self._usual = [start.replace(b"%", b"%%") + end for start in self._starts]

    def opening(self) -> bytes:
        prompt = b',"prompt_token_ids":%b,"prompt_text":%b' % (
            ids_json(self._prompt if self._answer.return_token_ids else None),
            encode(self._reply.prompt_text),
        )
        frames = self._before_the_answer(b'{"role":%b,"content":""}' % encode(self._reply.role), prompt)
        if self._reply.echo:
            frames += self._before_the_answer(b'{"content":%b}' % encode(self._reply.echo))
        return frames

    def delta(self, index: int, delta: TextDelta) -> bytes:
        top_logprobs, finish_reason = self._top_logprobs, delta.finish_reason
        if not delta.text and finish_reason is None and not (delta.token_ids and self._shows_tokens):
            return b""
        rows = NULL if top_logprobs is None else self._logprobs.of(delta.scored, top_logprobs)
        if self._usual and finish_reason is None:
            return self._usual[index] % (encode(delta.text), rows)
        return b"".join(
            (
                self._starts[index],
                encode(delta.text),
                b'},"logprobs":',
                rows,
                b',"finish_reason":',
                encode(finish_reason),
                b"" if finish_reason is None else b',"stop_reason":' + encode(delta.stop_reason),
                b',"token_ids":',
                ids_json(delta.token_ids if self._returns_ids else None),
                b"}]",
                self._usage(self._choices.generations[index].usage.completion_tokens),
                b"" if finish_reason is None or self._choices.usage_shown.at_end else fingerprint_json(self._answer),
                b"}\n\n",
            )
        )

    def closing(self) -> bytes:
        if not self._choices.usage_shown.at_end:
            return b""
        return usage_frame(self._head, self._choices, self._answer, is_chat=True)

    def _before_the_answer(self, delta: bytes, prompt: bytes = b"") -> bytes:
        """The same for every choice."""
        return b"".join(
            self._head
            + b'{"index":%d,"delta":%b,"logprobs":null,"finish_reason":null}]' % (index, delta)
            + self._usage(0)
            + prompt
            + b"}\n\n"
            for index in range(len(self._starts))
        )

    def _usage(self, completion_tokens: int) -> bytes:
        """Of one choice so far."""
        if not self._choices.usage_shown.so_far:
            return b""
        usage = TokenUsage(len(self._prompt), completion_tokens)
        return b"," + stream_usage(usage) + b',"completion_tokens_details":null}'
