"""What every answer has, whichever endpoint gives it."""

from collections.abc import Sequence

from msgspec import Raw, Struct

from adapters.inbound.http.openai.fragments import encode
from domain.generation import TokenUsage


class Answer(Struct, frozen=True, kw_only=True):
    """What an answer says of itself, and what of it the caller wants to see."""

    id: str
    created: int
    """Unix seconds."""
    model: str
    return_token_ids: bool = False
    include_usage: bool = False
    """Streamed: end with a chunk that has the usage and no choices."""
    continuous_usage: bool = False
    """Streamed: put the usage so far into every chunk."""


class Usage(Struct, kw_only=True):
    """`usage` of an answer that is not streamed."""

    prompt_tokens: int
    total_tokens: int
    completion_tokens: int
    prompt_tokens_details: None = None
    completion_tokens_details: None = None

    @classmethod
    def of(cls, usage: TokenUsage) -> "Usage":
        return cls(
            prompt_tokens=usage.prompt_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
            completion_tokens=usage.completion_tokens,
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
    return b'"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d' % (
        usage.prompt_tokens,
        usage.prompt_tokens + usage.completion_tokens,
        usage.completion_tokens,
    )


def usage_frame(head: bytes, usage: TokenUsage) -> bytes:
    """The last chunk, for a caller that wants the usage: it has no choices."""
    return head + b"]," + stream_usage(usage) + b"}}\n\n"


def ids_json(token_ids: Sequence[int] | None) -> bytes:
    return b"null" if token_ids is None else encode(token_ids)


def raw(json: bytes | None) -> Raw | None:
    """JSON that is there already, as a field."""
    return None if json is None else Raw(json)
