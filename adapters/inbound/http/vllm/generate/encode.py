"""Generated tokens as vLLM's JSON, whole or in chunks. Fields, order and nulls as vLLM 0.32 has them."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType

from adapters.inbound.http.openai.answer import Answer, Metrics, Usage, final_usage, ids_json, raw, without_nulls
from adapters.inbound.http.openai.encoding import encode, encode_numbers
from adapters.inbound.http.openai.ended import Ended, Scores, body_of, rows_into
from adapters.inbound.http.openai.logprobs import ChatEntries
from adapters.inbound.http.openai.rows import Rows
from application.services.choices import Choices
from domain.generation import FinishReason, ScoredTokens, StopReason, TextDelta
from domain.logprobs import WHOLE_VOCABULARY, distinct


class IntegerLogprobs:
    """By token id alone: no display touches it. All that the engine gave, the token itself first."""

    def __init__(self) -> None:
        self._entries: list[bytes] = []

    def add(self, scored: ScoredTokens | None) -> None:
        if scored is None or scored.columns is None:
            return
        columns, width = scored.columns, scored.columns.width
        numbers = encode_numbers(columns.logprobs)
        for index, rank in enumerate(columns.ranks):
            start = index * width
            row = columns.token_ids[start : start + width]
            candidates = [
                b'"token_id":%d,"logprob":%b,"rank":%b'
                % (row[column], numbers[start + column], encode(column or rank or None))
                for column in distinct(row)
            ]
            others = b",".join([b"{" + candidate + b"}" for candidate in candidates])
            self._entries.append(b"{" + candidates[0] + b',"top_logprobs":[' + others + b"]}")

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        entries, self._entries = self._entries, []
        return b'{"content":[' + b",".join(entries) + b"]}"


class Form(Struct, frozen=True):
    """What of a generation is shown."""

    rows: Rows
    shows_text: bool

    def logprobs(self) -> Scores | None:
        alternatives = self.rows.alternatives
        if alternatives is None:
            return None
        if not self.shows_text:
            return IntegerLogprobs()
        # Same as vLLM: unlike in chat, the token itself is among them even where none are asked for.
        return ChatEntries(
            self.rows.display.chat, alternatives if alternatives == WHOLE_VOCABULARY else alternatives or 1
        )

    @property
    def output_mode(self) -> str:
        return "text" if self.shows_text else "tokens"


class GenerateChoice(Struct, kw_only=True):
    index: int
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    token_ids: Sequence[int]
    routed_experts: None = None
    sampling_mask: None = None
    weight_versions: None = None
    text: str | UnsetType = UNSET
    logprobs: Raw | None


class GenerateBody(Struct, kw_only=True):
    request_id: str
    model: str
    created: int
    usage: Usage
    prompt_logprobs: Raw | None
    prompt_token_id_logprobs: None = None
    prompt_token_ids: Sequence[int] | None
    mm_placeholders: None = None
    metrics: Metrics | None
    kv_transfer_params: Mapping[str, Any] | None
    ec_transfer_params: Mapping[str, Any] | None
    output_mode: str
    choices: list[GenerateChoice]


async def generate_body(choices: Choices, answer: Answer, form: Form) -> bytes:
    """Runs every choice to its end."""
    generations = choices.generations
    logprobs = [form.logprobs() for _ in generations]

    def whole(ended: Sequence[Ended]) -> bytes:
        return encode(
            GenerateBody(
                request_id=answer.id,
                model=answer.model,
                created=answer.created,
                usage=Usage.of(choices, is_chat=False),
                prompt_logprobs=form.rows.prompt_logprobs(generations[0]),
                prompt_token_ids=generations[0].prompt.token_ids if answer.return_token_ids else None,
                metrics=Metrics.of_drafts(choices),
                kv_transfer_params=choices.transfer.kv,
                ec_transfer_params=choices.transfer.ec,
                output_mode=form.output_mode,
                choices=[
                    GenerateChoice(
                        index=index,
                        finish_reason=choice.finish_reason,
                        stop_reason=choice.stop_reason,
                        token_ids=choice.token_ids,
                        text=choice.text if form.shows_text else UNSET,
                        logprobs=raw(scores.take() if scores else None),
                    )
                    for index, (choice, scores) in enumerate(zip(ended, logprobs, strict=True))
                ],
            )
        )

    return await body_of(choices, rows_into(logprobs), whole)


class GenerateChunks:
    """Frames of a streamed generation. The prompt is in the first, its scores are in the first of each choice."""

    def __init__(self, choices: Choices, answer: Answer, form: Form) -> None:
        self._choices = choices
        self._form = form
        self._logprobs = [form.logprobs() for _ in choices.generations]
        self._returns_prompt = answer.return_token_ids
        self._unseen = set(range(len(choices.generations)))
        self._head = b'data: {"request_id":%b,"usage":' % encode(answer.id)
        self._mode = b',"output_mode":%b,"choices":[' % encode(form.output_mode)

    def opening(self) -> bytes:
        return b""

    def delta(self, index: int, delta: TextDelta) -> bytes:
        logprobs, shows_text = self._logprobs[index], self._form.shows_text
        if not delta.token_ids and delta.finish_reason is None and not (shows_text and delta.text):
            return b""
        if logprobs:
            logprobs.add(delta.scored)
        choice = GenerateChoice(
            index=index,
            finish_reason=delta.finish_reason,
            stop_reason=delta.stop_reason,
            token_ids=delta.token_ids,
            text=delta.text if shows_text else UNSET,
            logprobs=raw(logprobs.take() if logprobs else None),
        )
        return b"".join((self._head, self._usage(index), self._prompt(index), self._mode, encode(choice), b"]}\n\n"))

    def closing(self) -> bytes:
        if not self._choices.usage_shown.at_end:
            return b""
        metrics = Metrics.of_drafts(self._choices)
        told = b"" if metrics is None else b',"metrics":' + encode(without_nulls(metrics))
        return self._head + final_usage(self._choices, is_chat=False) + told + self._mode + b"]}\n\n"

    def _usage(self, index: int) -> bytes:
        """Of one choice so far."""
        if not self._choices.usage_shown.so_far:
            return b"null"
        usage = self._choices.generations[index].usage
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        return encode(
            Usage(
                prompt_tokens=prompt,
                total_tokens=prompt + completion,
                completion_tokens=completion,
                prompt_tokens_details=None,
            )
        )

    def _prompt(self, index: int) -> bytes:
        if index not in self._unseen:
            return b""
        generation, is_first = self._choices.generations[index], len(self._unseen) == len(self._logprobs)
        self._unseen.discard(index)
        shown = is_first and self._returns_prompt
        prompt = b',"prompt_token_ids":' + ids_json(generation.prompt.token_ids) if shown else b""
        scores = self._form.rows.prompt_logprobs(generation)
        return prompt if scores is None else prompt + b',"prompt_logprobs":' + bytes(scores)
