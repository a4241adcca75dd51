"""`POST /inference/v1/generate` and `POST /inference/v1/abort_requests` as they come in."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from adapters.inbound.http.openai.sampling import (
    Int64,
    RepetitionFields,
    StreamOptions,
    TokenId,
    Unbuilt,
)
from adapters.inbound.http.openai.structured_outputs import StructuredOutputFields


class SamplingParamsFields(Struct, kw_only=True):
    """vLLM's SamplingParams. In every field, null means the same as absent; what only vLLM's own process reads of them
    is ignored."""

    n: Int64 | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Int64 | None = None
    min_p: float | None = None
    seed: Int64 | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[TokenId] | None = None
    ignore_eos: bool | None = None
    max_tokens: Int64 | None = None
    """None: as many as fit."""
    min_tokens: Int64 | None = None
    logprobs: Int64 | None = None
    prompt_logprobs: Int64 | None = None
    logprob_token_ids: list[TokenId] | None = None
    detokenize: bool | None = None
    skip_special_tokens: bool | None = None
    spaces_between_special_tokens: bool | None = None
    include_stop_str_in_output: bool | None = None
    stream_interval: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    structured_outputs: StructuredOutputFields | None = None
    logit_bias: dict[str, float] | None = None
    allowed_token_ids: list[TokenId] | None = None
    bad_words: list[str] | None = None
    repetition_detection: RepetitionFields | None = None
    extra_args: dict[str, Any] | None = None
    routed_experts_prompt_start: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None

    prompt_logprob_start: Unbuilt = None
    prompt_logprob_token_ids: Unbuilt = None
    thinking_token_budget: Unbuilt = -1
    trace_decode_token_ids: Unbuilt = None
    watermarking: Unbuilt = False


class GenerateRequest(Struct, kw_only=True):
    token_ids: list[TokenId]
    sampling_params: SamplingParamsFields
    request_id: str | None = None
    model: str | None = None
    return_token_ids: bool | None = None
    """Of the prompt. Those that are generated are always told."""
    output_mode: Literal["tokens", "text"] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    cache_salt: str | None = None
    priority: Int64 | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None

    content_parts: Unbuilt = None
    features: Unbuilt = None
    reasoning_ended: Unbuilt = None
    reasoning_parser_kwargs: Unbuilt = None


class AbortRequest(Struct, kw_only=True):
    request_ids: list[str]
