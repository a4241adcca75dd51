"""What every answer has, whichever endpoint gives it."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct, structs

from adapters.inbound.http.openai.encoding import encode
from application.services.choices import Choices
from domain.generation import TokenUsage
from domain.speculation import Speculation


class Answer(Struct, frozen=True, kw_only=True):
    """What an answer says of itself, and what of it the caller wants to see."""

    id: str
    created: int
    """Unix seconds."""
    model: str
    fingerprint: str | None = None
    return_token_ids: bool = False


class PromptDetails(Struct, kw_only=True):
    """`usage.prompt_tokens_details`"""

    cached_tokens: int
    created_cache_tokens: int | None = None
    """In chat alone."""
    multimodal_tokens: None = None


class Usage(Struct, kw_only=True):
    """`usage` of an answer that is not streamed."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int
    prompt_tokens_details: PromptDetails | None
    completion_tokens_details: None = None

    @classmethod
    def of(cls, choices: Choices, *, is_chat: bool) -> "Usage":
        usage = choices.usage
        return cls(
            prompt_tokens=usage.prompt_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
            completion_tokens=usage.completion_tokens,
            prompt_tokens_details=prompt_details(choices, is_chat=is_chat),
        )


def prompt_details(choices: Choices, *, is_chat: bool) -> PromptDetails | None:
    """None where they are not shown, or the engine does not tell them."""
    usage = choices.usage
    if not choices.usage_shown.prompt_details or usage.cached_tokens is None:
        return None
    return PromptDetails(
        cached_tokens=usage.cached_tokens, created_cache_tokens=usage.created_cache_tokens if is_chat else None
    )


def chunk_head(answer: Answer, object_type: str) -> bytes:
    """The start of every chunk's frame, into the list of its choices."""
    return b'data: {"id":%b,"object":%b,"created":%d,"model":%b,"choices":[' % (
        encode(answer.id),
        encode(object_type),
        answer.created,
        encode(answer.model),
    )


def stream_usage(usage: TokenUsage) -> bytes:
    """The counts of a chunk's `usage`, without its closing brace."""
    return b'"usage":' + counts(usage)


def counts(usage: TokenUsage) -> bytes:
    return b'{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d' % (
        usage.prompt_tokens,
        usage.prompt_tokens + usage.completion_tokens,
        usage.completion_tokens,
    )


class SpeculativeDecoding(Struct, kw_only=True):
    """`speculative_decoding` in `metrics`."""

    mean_acceptance_length: float
    draft_acceptance_rate: float
    acceptance_histogram: Sequence[int]
    num_spec_steps: int
    num_accepted_draft_tokens: int
    num_draft_tokens: int
    num_spec_tokens: int
    per_step_accepted: Sequence[int] | None
    per_step_drafted: Sequence[int] | None

    @classmethod
    def of(cls, told: Speculation) -> "SpeculativeDecoding":
        return cls(
            mean_acceptance_length=told.tokens_per_step,
            draft_acceptance_rate=told.kept_share,
            acceptance_histogram=told.steps_by_kept,
            num_spec_steps=told.steps,
            num_accepted_draft_tokens=told.kept,
            num_draft_tokens=told.drafted,
            num_spec_tokens=told.most_drafts,
            per_step_accepted=told.kept_by_step or None,
            per_step_drafted=told.drafted_by_step or None,
        )


class Metrics(Struct, kw_only=True):
    """`metrics` of an answer."""

    time_to_first_token_ms: float | None = None
    generation_time_ms: float | None = None
    queue_time_ms: float | None = None
    mean_itl_ms: float | None = None
    tokens_per_second: float | None = None
    speculative_decoding: SpeculativeDecoding | None = None

    @classmethod
    def of(cls, choices: Choices) -> "Metrics | None":
        """None where they are not told."""
        timing, of_drafts = choices.timing, cls.of_drafts(choices)
        if timing is None:
            # same as vLLM: what an engine was told to count is told without a flag of the frontend's
            return of_drafts
        return cls(
            time_to_first_token_ms=_ms(timing.first_output_s),
            generation_time_ms=_ms(timing.generating_s),
            queue_time_ms=_ms(timing.queued_s),
            mean_itl_ms=_ms(timing.per_token_s),
            tokens_per_second=timing.tokens_per_second,
            speculative_decoding=None if of_drafts is None else of_drafts.speculative_decoding,
        )

    @classmethod
    def of_drafts(cls, choices: Choices) -> "Metrics | None":
        """None where an engine counts none."""
        counted = choices.speculation
        return None if counted is None else cls(speculative_decoding=SpeculativeDecoding.of(counted))


def final_usage(choices: Choices, *, is_chat: bool) -> bytes:
    """`usage` of the last chunk, which has no nulls."""
    details = prompt_details(choices, is_chat=is_chat)
    shown = b"" if details is None else b',"prompt_tokens_details":' + encode(without_nulls(details))
    return counts(choices.usage) + shown + b"}"


def usage_frame(head: bytes, choices: Choices, answer: Answer, *, is_chat: bool) -> bytes:
    """The last chunk of a stream that tells its usage at its end: it has no choices, and no nulls."""
    metrics = Metrics.of(choices)
    return b"".join(
        (
            head,
            b'],"usage":',
            final_usage(choices, is_chat=is_chat),
            fingerprint_json(answer),
            b"" if metrics is None else b',"metrics":' + encode(without_nulls(metrics)),
            b"}\n\n",
        )
    )


def fingerprint_json(answer: Answer) -> bytes:
    """As a further field of the chunk that ends a stream; nothing where there is none."""
    return b"" if answer.fingerprint is None else b',"system_fingerprint":' + encode(answer.fingerprint)


def without_nulls(told: Struct) -> dict[str, Any]:
    return {
        name: without_nulls(value) if isinstance(value, Struct) else value
        for name, value in structs.asdict(told).items()
        if value is not None
    }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def ids_json(token_ids: Sequence[int] | None) -> bytes:
    return b"null" if token_ids is None else encode(token_ids)


def raw(json: bytes | None) -> Raw | None:
    """JSON that is there already, as a field."""
    return None if json is None else Raw(json)
