"""The request fields that chat and completions share, and how they are lowered."""

from functools import cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, structs

from adapters.inbound.http.openai.extensions import extra_args
from adapters.inbound.http.openai.headers import SchedulingHeaders
from adapters.inbound.http.openai.structured_outputs import (
    ResponseFormat,
    StructuredOutputFields,
    lower_structured_outputs,
)
from application.model import ModelDefaults
from application.requests import Scheduling, TextOutput, Truncation
from domain.errors import RequestError
from domain.logprobs import WHOLE_VOCABULARY
from domain.sampling import OutOfRange, RepetitionDetection, SamplingParams

MOST_STOP_STRINGS = 4
"""Same as vLLM."""

MOST_CHOICES = 16384
"""In one answer. Same as vLLM for those of one prompt."""

LONGEST_SALT = 128
UNSALTY = set("@/\\\0")
"""What a cache salt must not hold. Same as vLLM."""

T = TypeVar("T")

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
TokenId = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Unbuilt = Annotated[Any, Meta(extra={"unbuilt": True})]
"""A field that vLLM or OpenAI knows and this server does not serve yet. Its default asks for nothing, as null does;
any other value is refused by name."""


class NotSupported(RequestError):
    """The request asks for what this server does not do."""


class InvalidField(RequestError):
    """A field has a value that means nothing, or contradicts another field."""


class StreamOptions(Struct):
    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class RepetitionFields(Struct, kw_only=True):
    max_pattern_size: Int64 = 0
    min_pattern_size: Int64 = 0
    min_count: Int64 = 0


class SamplingFields(Struct, kw_only=True):
    """In every field, null means the same as absent."""

    model: str | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Int64 | None = None
    min_p: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    allowed_token_ids: list[TokenId] | None = None
    bad_words: list[str] | None = None
    seed: Int64 | None = None
    n: Int64 | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[TokenId] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    min_tokens: Int64 | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stream_interval: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    prompt_logprobs: Int64 | None = None
    logprob_token_ids: list[TokenId] | None = None
    skip_special_tokens: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    return_token_ids: bool | None = None
    add_special_tokens: bool | None = None
    spaces_between_special_tokens: bool | None = None
    """Accepted and without effect: nothing but tokens ever adds to a text. Same as vLLM with fast tokenizers."""
    truncate_prompt_tokens: Annotated[int, Meta(ge=-1, le=2**63 - 1)] | None = None
    truncation_side: Literal["left", "right"] | None = None
    repetition_detection: RepetitionFields | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputFields | None = None
    priority: Int64 | None = None
    cache_salt: str | None = None
    session_id: str | None = None
    vllm_xargs: dict[str, str | int | float | list[str | int | float]] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    request_id: str | None = None
    user: str | None = None
    """Accepted and unused. Same as vLLM, as the next four: one is for beams, three are for those who only render."""
    length_penalty: float | None = None
    mm_payload: Literal["tensors", "none"] | None = None
    return_mm_kwargs: bool | None = None
    return_token_offsets: bool | None = None
    routed_experts_prompt_start: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None

    metadata: Unbuilt = None
    prompt_cache_key: Unbuilt = None
    prompt_cache_options: Unbuilt = None
    prompt_cache_retention: Unbuilt = None
    return_weight_versions: Unbuilt = False
    safety_identifier: Unbuilt = None
    service_tier: Unbuilt = "auto"
    store: Unbuilt = False
    thinking_token_budget: Unbuilt = -1
    use_beam_search: Unbuilt = False
    watermarking: Unbuilt = False


@cache
def _unbuilt(body_type: type[Struct]) -> dict[str, Any]:
    """The fields of a request body that are not built, with the value that asks for nothing."""
    return {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in structs.fields(body_type)
        if field.type == Unbuilt
    }


def refuse_unbuilt(body: Struct) -> None:
    """Refuse by name what is asked for and not served, rather than answer without it."""
    for name, neutral in _unbuilt(type(body)).items():
        value = getattr(body, name)
        if value is neutral or value is None:
            continue
        if value != neutral or isinstance(value, bool) is not isinstance(neutral, bool):
            raise NotSupported(f"{name} is not supported by this server yet.", name)


def lower_sampling(
    body: SamplingFields,
    defaults: ModelDefaults,
    *,
    max_tokens: int | None,
    logprobs: int | None,
    echoed_logprobs: int | None = None,
) -> SamplingParams:
    """`logprobs` are the alternatives per sampled token, `echoed_logprobs` those per echoed prompt token."""
    if body.logprob_token_ids is not None and logprobs is None:
        raise InvalidField("logprob_token_ids needs logprobs.", "logprob_token_ids")
    return SamplingParams(
        max_tokens=max_tokens,
        min_tokens=body.min_tokens or 0,
        temperature=_or(body.temperature, defaults.temperature),
        top_p=_or(body.top_p, defaults.top_p),
        top_k=_or(body.top_k, defaults.top_k),
        min_p=_or(body.min_p, defaults.min_p),
        frequency_penalty=_or(body.frequency_penalty, defaults.frequency_penalty),
        presence_penalty=_or(body.presence_penalty, defaults.presence_penalty),
        repetition_penalty=_or(body.repetition_penalty, defaults.repetition_penalty),
        logit_bias=_logit_bias(body.logit_bias),
        allowed_token_ids=_allowed(body.allowed_token_ids),
        repetition_detection=_repetition(body.repetition_detection),
        structured_outputs=lower_structured_outputs(body.structured_outputs, body.response_format),
        extra_args=extra_args(body.vllm_xargs, body.kv_transfer_params, body.ec_transfer_params),
        seed=None if body.seed == -1 else body.seed,  # Same as vLLM: -1 is no seed.
        ignore_eos=bool(body.ignore_eos),
        stop_token_ids=body.stop_token_ids or (),
        logprobs=logprobs,
        prompt_logprobs=wider(body.prompt_logprobs, echoed_logprobs),
        logprob_token_ids=body.logprob_token_ids,
        routed_experts_prompt_start=body.routed_experts_prompt_start or 0,
    )


def wider(one: int | None, other: int | None) -> int | None:
    """Of two numbers of alternatives the one that holds the other: the whole vocabulary, -1, holds any. One that is no
    number of alternatives stays, to be refused."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other) if min(one, other) <= WHOLE_VOCABULARY else max(one, other)


def lower_output(
    body: SamplingFields,
    *,
    echo: bool = False,
    prompt_only: bool = False,
    most_stop_strings: int = MOST_STOP_STRINGS,
) -> TextOutput:
    n = _or(body.n, 1)
    if not 1 <= n <= MOST_CHOICES:
        raise InvalidField(f"n must be in [1, {MOST_CHOICES}], got {n}.", "n")
    usage = body.stream_options or StreamOptions()
    return TextOutput(
        n=n,
        usage_at_end=bool(usage.include_usage),
        usage_so_far=bool(usage.continuous_usage_stats),
        stop=_stop_strings(body.stop, most_stop_strings),
        include_stop=bool(body.include_stop_str_in_output),
        interval=_or(body.stream_interval, 1) if body.stream else 1,
        skip_special_tokens=_or(body.skip_special_tokens, True),
        return_tokens_as_token_ids=body.return_tokens_as_token_ids,
        echo=echo,
        prompt_only=prompt_only,
    )


def lower_scheduling(body: SamplingFields, headers: SchedulingHeaders) -> Scheduling:
    salt = body.cache_salt
    if salt is not None and (not 1 <= len(salt) <= LONGEST_SALT or set(salt) & UNSALTY):
        message = f"cache_salt must have 1 to {LONGEST_SALT} characters, none of them @, /, \\ or NUL."
        raise InvalidField(message, "cache_salt")
    session_id = body.session_id or headers.session_id or (body.vllm_xargs or {}).get("session_id")
    return Scheduling(
        priority=(body.priority or 0) if headers.priority is None else headers.priority,
        cache_salt=salt,
        session_id=session_id if session_id and isinstance(session_id, str) else None,
        data_parallel_rank=headers.data_parallel_rank,
    )


def lower_truncation(body: SamplingFields) -> Truncation | None:
    """Same as vLLM: without a side it is the end of the prompt that stays."""
    if body.truncate_prompt_tokens is None:
        return None
    return Truncation(tokens=body.truncate_prompt_tokens, keeps_end=body.truncation_side != "right")


def check_stream(body: SamplingFields) -> None:
    """A stream has no place for the prompt's scores."""
    if body.stream and body.prompt_logprobs:
        raise InvalidField("prompt_logprobs are not available when stream is true.", "prompt_logprobs")
    if body.stream_options not in (None, StreamOptions()) and not body.stream:
        raise InvalidField("stream_options is only allowed when stream is true.", "stream_options")


def check_max_tokens(value: int | None, param: str) -> None:
    """The sampling parameters check it too, but do not know what the caller calls it."""
    if value is not None and value < 1:
        raise OutOfRange(f"{param} must be at least 1, got {value}.", param)


def _logit_bias(biases: dict[str, float] | None) -> dict[int, float] | None:
    """Same as vLLM: biases are clamped to [-100, 100]."""
    if biases is None:
        return None
    try:
        return {int(token_id): max(-100.0, min(100.0, bias)) for token_id, bias in biases.items()}
    except ValueError:
        raise InvalidField("logit_bias must have token ids as its keys.", "logit_bias") from None


def _allowed(token_ids: list[int] | None) -> list[int] | None:
    if token_ids == []:
        raise InvalidField("allowed_token_ids must not be empty.", "allowed_token_ids")
    return token_ids


def _repetition(fields: RepetitionFields | None) -> RepetitionDetection | None:
    return RepetitionDetection(**structs.asdict(fields)) if fields else None


def _stop_strings(stop: str | list[str] | None, most: int) -> list[str]:
    strings = [stop] if isinstance(stop, str) else stop or []
    if len(strings) > most:
        raise InvalidField(f"stop takes at most {most} strings, got {len(strings)}.", "stop")
    if "" in strings:
        raise InvalidField("stop cannot contain an empty string.", "stop")
    return strings


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
