"""What answers hold that is written as bytes and is no Struct anywhere else: scores, and the chunks of a stream.

A field that a chunk may leave out is typed with UnsetType; every other one is always there.
"""

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from domain.generation import FinishReason, StopReason


class ScoredToken(Struct, kw_only=True):
    token: str
    logprob: float
    bytes: list[int]


class ChatEntry(ScoredToken, kw_only=True):
    top_logprobs: list[ScoredToken]


class ChatLogprobs(Struct, kw_only=True):
    content: list[ChatEntry]


class CompletionLogprobs(Struct, kw_only=True):
    text_offset: list[int]
    token_logprobs: list[float | None]
    tokens: list[str]
    top_logprobs: list[dict[str, float] | None]


class PromptToken(Struct, kw_only=True):
    """By its id, as an entry of `prompt_logprobs`."""

    logprob: float
    rank: int | None
    decoded_token: str


class StreamPromptDetails(Struct, kw_only=True):
    cached_tokens: int
    created_cache_tokens: int | UnsetType = UNSET


class StreamUsage(Struct, kw_only=True):
    prompt_tokens: int
    total_tokens: int
    completion_tokens: int
    prompt_tokens_details: StreamPromptDetails | UnsetType = UNSET
    completion_tokens_details: UnsetType | None = UNSET


class StreamSpeculativeDecoding(Struct, kw_only=True):
    mean_acceptance_length: float
    draft_acceptance_rate: float
    acceptance_histogram: list[int]
    num_spec_steps: int
    num_accepted_draft_tokens: int
    num_draft_tokens: int
    num_spec_tokens: int
    per_step_accepted: list[int] | UnsetType = UNSET
    per_step_drafted: list[int] | UnsetType = UNSET


class StreamMetrics(Struct, kw_only=True):
    time_to_first_token_ms: float | UnsetType = UNSET
    generation_time_ms: float | UnsetType = UNSET
    queue_time_ms: float | UnsetType = UNSET
    mean_itl_ms: float | UnsetType = UNSET
    tokens_per_second: float | UnsetType = UNSET
    speculative_decoding: StreamSpeculativeDecoding | UnsetType = UNSET


class Chunk(Struct, kw_only=True):
    id: str
    created: int
    model: str
    usage: StreamUsage | UnsetType = UNSET
    system_fingerprint: str | UnsetType = UNSET
    metrics: StreamMetrics | UnsetType = UNSET


class MessageDelta(Struct, kw_only=True):
    role: str | UnsetType = UNSET
    content: str


class ChatChunkChoice(Struct, kw_only=True):
    index: int
    delta: MessageDelta
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason | None
    stop_reason: StopReason | UnsetType | None = UNSET
    token_ids: list[int] | UnsetType | None = UNSET


class ChatChunk(Chunk, kw_only=True):
    object: Literal["chat.completion.chunk"]
    choices: list[ChatChunkChoice]
    prompt_token_ids: list[int] | UnsetType | None = UNSET
    prompt_text: str | UnsetType | None = UNSET


class CompletionChunkChoice(Struct, kw_only=True):
    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    prompt_token_ids: list[int] | None
    token_ids: list[int] | None


class CompletionChunk(Chunk, kw_only=True):
    object: Literal["text_completion"]
    choices: list[CompletionChunkChoice]


class GenerateChunkChoice(Struct, kw_only=True):
    index: int
    finish_reason: FinishReason | None
    stop_reason: StopReason | None
    token_ids: list[int]
    routed_experts: None
    sampling_mask: None
    weight_versions: None
    text: str | UnsetType = UNSET
    logprobs: dict[str, Any] | None


class GenerateChunk(Struct, kw_only=True):
    request_id: str
    usage: StreamUsage | None
    prompt_token_ids: list[int] | UnsetType = UNSET
    prompt_logprobs: list[dict[str, PromptToken] | None] | UnsetType = UNSET
    metrics: StreamMetrics | UnsetType = UNSET
    output_mode: str
    choices: list[GenerateChunkChoice]
