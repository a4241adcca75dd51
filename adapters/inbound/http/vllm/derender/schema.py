"""What is to be shown, as it comes in: an answer of `/inference/v1/generate`, or a chunk of one."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from adapters.inbound.http.openai.answer import PromptDetails
from adapters.inbound.http.openai.chat.schema import ChatRequest
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.sampling import Int64, TokenId
from domain.generation import FinishReason

Count = Annotated[int, Meta(ge=0, le=2**53)]
Bytes = Annotated[bytes, Meta(max_length=128)]
Held = Annotated[str, Meta(max_length=1 << 16)]
"""What can still become a stop string: more than any that is of use, and little enough to be looked through again for
each character."""


class ScoredId(Struct, kw_only=True, gc=False):
    token_id: TokenId
    logprob: float
    rank: Count | None = None


class Position(ScoredId, kw_only=True, gc=False):
    top_logprobs: list[ScoredId] = []


class IdLogprobs(Struct, kw_only=True):
    content: list[Position] | None = None


class GeneratedChoice(Struct, kw_only=True):
    index: Count
    finish_reason: FinishReason | None = None
    stop_reason: Int64 | str | None = None
    token_ids: list[TokenId] | None = None
    logprobs: IdLogprobs | None = None


class GeneratedUsage(Struct, kw_only=True):
    prompt_tokens: Count = 0
    completion_tokens: Count | None = None
    prompt_tokens_details: PromptDetails | None = None


class PromptScore(Struct, kw_only=True, gc=False):
    logprob: float
    rank: Count | None = None


PromptScores = list[dict[TokenId, PromptScore] | None]


class Generated(Struct, kw_only=True):
    """An answer of `/inference/v1/generate`, or a chunk of one."""

    choices: list[GeneratedChoice]
    request_id: str | None = None
    usage: GeneratedUsage | None = None
    prompt_logprobs: PromptScores | None = None
    prompt_token_ids: list[TokenId] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    output_mode: Literal["tokens"] = "tokens"
    """Text is there already in any other."""


class StreamState(Struct, kw_only=True):
    """What the next chunk of a choice is read behind. Its sender keeps it, and need not understand it."""

    role_sent: bool = False
    unread: Bytes = b""
    context: Bytes = b""
    text_offset: Count = 0
    held: Held = ""
    stopped_by: str | None = None
    seen: Count = 0


class Form(Struct):
    """Which of the two an endpoint is sent. In every field, null means the same as absent."""

    stream: bool | None = None


class DerenderChat(Struct, kw_only=True):
    generate_response: Generated
    model: str | None = None
    prompt_tokens: Count | None = None
    prompt_token_ids: list[TokenId] | None = None
    chat_request: ChatRequest | None = None


class DerenderCompletion(Struct, kw_only=True):
    """All lists are as long as there are prompts."""

    generate_responses: list[Generated]
    model: str | None = None
    prompt_tokens: list[Count] | None = None
    prompt_token_ids: list[list[TokenId] | None] | None = None
    completion_request: CompletionRequest | None = None


class DerenderChunk(Struct, kw_only=True):
    generate_chunk: Generated
    stream_state: StreamState | None = None
    """What was answered to the chunk before; none for the first of a choice."""
    model: str | None = None
    prompt_tokens: Count | None = None
    prompt_token_ids: list[TokenId] | None = None


class DerenderChatChunk(DerenderChunk, kw_only=True):
    chat_request: ChatRequest | None = None


class DerenderCompletionChunk(DerenderChunk, kw_only=True):
    completion_request: CompletionRequest | None = None
