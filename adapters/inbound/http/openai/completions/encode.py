"""A completion as OpenAI's JSON, whole or in chunks. Fields, order and nulls as vLLM 0.32 has them."""

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
    raw,
    stream_usage,
    usage_frame,
)
from adapters.inbound.http.openai.encoding import NULL, encode
from adapters.inbound.http.openai.ended import Ended, body_of
from adapters.inbound.http.openai.logprobs import CompletionLists
from adapters.inbound.http.openai.rows import Rows
from application.services.choices import Choices
from application.services.text_generation import TextGeneration
from domain.generation import FinishReason, StopReason, TextDelta


class CompletionChoice(Struct, kw_only=True):
    index: int
    text: str
    logprobs: Raw | None
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    token_ids: Sequence[int] | None
    prompt_logprobs: Raw | None
    prompt_token_ids: Sequence[int] | None
    routed_experts: None = None


class CompletionBody(Struct, kw_only=True):
    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    service_tier: None = None
    system_fingerprint: str | None
    usage: Usage
    kv_transfer_params: Mapping[str, Any] | None
    ec_transfer_params: Mapping[str, Any] | None
    metrics: Metrics | None


class CompletionRows(Rows, frozen=True):
    """Where output rows are as wide as chosen ids are many, those of the echoed prompt are not."""

    output_alternatives: int


class ChoiceEncoder:
    """One choice, as it grows."""

    def __init__(self, index: int, generation: TextGeneration, rows: CompletionRows) -> None:
        self.index = index
        self.generation = generation
        self._rows = rows
        self._lists = None if rows.alternatives is None else CompletionLists(rows.display.completions)
        self._echoed = False

    def add(self, delta: TextDelta) -> str:
        """Take in the rows of a delta; gives the text to show, with the prompt before the first."""
        text, lists, rows = delta.text, self._lists, self._rows
        if not self._echoed:
            self._echoed = True
            if self.generation.echo is not None:
                text = self.generation.echo + text
                if lists and rows.alternatives is not None:
                    lists.add(self.generation.scored_prompt, rows.alternatives)
        if lists:
            lists.add(delta.scored, rows.output_alternatives)
        return text

    def is_worth_a_chunk(self, delta: TextDelta, returns_ids: bool) -> bool:
        """Whether a client sees anything in it: text, rows, token ids or the end."""
        if delta.text or delta.finish_reason is not None:
            return True
        if not self._echoed and self.generation.echo is not None:
            return True
        return bool(delta.token_ids) and (returns_ids or self._lists is not None)

    def rows_of(self, delta: TextDelta) -> bytes:
        """Of a delta that is not the first, as JSON."""
        rows = self._rows
        return NULL if self._lists is None else rows.display.completions.of(delta.scored, rows.output_alternatives)

    def logprobs_json(self) -> bytes | None:
        return self._lists.take() if self._lists else None


async def completion_body(choices: Choices, answer: Answer, rows: CompletionRows) -> bytes:
    """Runs every choice to its end."""
    encoders = [ChoiceEncoder(index, generation, rows) for index, generation in enumerate(choices.generations)]

    def whole(ended: Sequence[Ended]) -> bytes:
        return encode(
            CompletionBody(
                id=answer.id,
                created=answer.created,
                model=answer.model,
                choices=[
                    CompletionChoice(
                        index=encoder.index,
                        text=choice.text,
                        logprobs=raw(encoder.logprobs_json()),
                        finish_reason=choice.finish_reason,
                        stop_reason=choice.stop_reason,
                        token_ids=choice.token_ids if answer.return_token_ids else None,
                        prompt_logprobs=rows.prompt_logprobs(encoder.generation),
                        prompt_token_ids=encoder.generation.prompt.token_ids or None
                        if answer.return_token_ids
                        else None,
                    )
                    for encoder, choice in zip(encoders, ended, strict=True)
                ],
                system_fingerprint=answer.fingerprint,
                usage=Usage.of(choices, is_chat=False),
                kv_transfer_params=choices.transfer.kv,
                ec_transfer_params=choices.transfer.ec,
                metrics=Metrics.of(choices),
            )
        )

    return await body_of(choices, lambda index, delta: encoders[index].add(delta), whole)


class CompletionChunks:
    """Frames of a streamed completion. With echo, the first one of a choice has the prompt before the first delta."""

    def __init__(self, choices: Choices, answer: Answer, rows: CompletionRows) -> None:
        self._choices = choices
        self._answer = answer
        self._encoders = [
            ChoiceEncoder(index, generation, rows) for index, generation in enumerate(choices.generations)
        ]
        self._unseen = set(range(len(self._encoders)))
        self._head = chunk_head(answer, "text_completion")
        self._starts = [self._head + b'{"index":%d,"text":' % encoder.index for encoder in self._encoders]
        self._usual: list[bytes] | None = None
        """Formats of what is in between, of text and rows; None where more is shown than those."""
        if not (answer.return_token_ids or choices.usage_shown.so_far):
            nulls = b'"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null'
            end = b'%b,"logprobs":%b,' + nulls + b"}]}\n\n"
            self._usual = [start.replace(b"%", b"%%") + end for start in self._starts]

    def opening(self) -> bytes:
        return b""

    def delta(self, index: int, delta: TextDelta) -> bytes:
        encoder, answer, shown = self._encoders[index], self._answer, self._choices.usage_shown
        if not (delta.text or encoder.is_worth_a_chunk(delta, answer.return_token_ids)):
            return b""
        if self._usual and delta.finish_reason is None and index not in self._unseen:
            return self._usual[index] % (encode(delta.text), encoder.rows_of(delta))
        text, rows = encode(encoder.add(delta)), encoder.logprobs_json() or NULL
        return b"".join(
            (
                self._starts[index],
                text,
                b',"logprobs":',
                rows,
                b',"finish_reason":',
                encode(delta.finish_reason),
                b',"stop_reason":',
                encode(delta.stop_reason),
                b',"prompt_token_ids":',
                ids_json(self._prompt_token_ids(encoder)),
                b',"token_ids":',
                ids_json(delta.token_ids if answer.return_token_ids else None),
                b"}]",
                b"," + stream_usage(encoder.generation.usage) + b"}" if shown.so_far else b"",
                b"" if delta.finish_reason is None or shown.at_end else fingerprint_json(answer),
                b"}\n\n",
            )
        )

    def closing(self) -> bytes:
        if not self._choices.usage_shown.at_end:
            return b""
        return usage_frame(self._head, self._choices, self._answer, is_chat=False)

    def _prompt_token_ids(self, encoder: ChoiceEncoder) -> Sequence[int] | None:
        """With the first chunk of a choice, if ids are wanted. Same as vLLM: with echo, too."""
        if encoder.index not in self._unseen:
            return None
        self._unseen.discard(encoder.index)
        wanted = self._answer.return_token_ids or encoder.generation.echo is not None
        return encoder.generation.prompt.token_ids if wanted else None
