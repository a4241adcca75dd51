"""`POST /tokenize` and `POST /detokenize` as they come in."""

from typing import Any

from msgspec import Struct

from adapters.inbound.http.openai.chat.schema import ChatMessage, ReasoningEffort
from adapters.inbound.http.openai.sampling import TokenId, Unbuilt


class TokenizeRequest(Struct, kw_only=True):
    """Of `prompt` and `messages` one. In every field, null means the same as absent."""

    model: str | None = None
    add_special_tokens: bool | None = None
    """To a text they are added by default, to a conversation they are not."""
    return_token_strs: bool | None = None

    prompt: str | None = None

    messages: list[ChatMessage] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    documents: list[dict[str, str]] | None = None
    reasoning_effort: ReasoningEffort | None = None

    media_io_kwargs: Unbuilt = None
    mm_processor_kwargs: Unbuilt = None
    tools: Unbuilt = None


class DetokenizeRequest(Struct, kw_only=True):
    model: str | None = None
    tokens: list[TokenId]
