"""A chat request as the service takes it. Knows no server option."""

from adapters.inbound.http.openai.chat.schema import ChatMessage, ChatRequest, ContentPart
from adapters.inbound.http.openai.sampling import (
    InvalidField,
    NotSupported,
    check_max_tokens,
    check_stream_options,
    lower_output,
    lower_sampling,
    lower_scheduling,
    lower_truncation,
    refuse_unbuilt,
)
from application.model import ModelDefaults
from application.requests import Chat
from domain.chat import Message

UNBUILT_IN_MESSAGE = (
    "tool_calls",
    "tool_call_id",
    "function_call",
    "audio",
    "refusal",
    "reasoning",
    "reasoning_content",
)


def lower(body: ChatRequest, request_id: str, defaults: ModelDefaults) -> Chat:
    """Raises RequestError, with the field's name, for what is not served or contradicts itself."""
    refuse_unbuilt(body)
    check_stream_options(body)
    if not body.messages:
        raise InvalidField("messages must hold at least one message.", "messages")
    max_tokens, field = body.max_tokens, "max_tokens"
    if body.max_completion_tokens is not None:
        max_tokens, field = body.max_completion_tokens, "max_completion_tokens"
    check_max_tokens(max_tokens, field)
    return Chat(
        request_id=request_id,
        messages=[_message(message) for message in body.messages],
        sampling=lower_sampling(
            body,
            defaults,
            max_tokens=defaults.max_tokens if max_tokens is None else max_tokens,
            logprobs=top_logprobs(body),
        ),
        bad_words=body.bad_words or (),
        truncation=lower_truncation(body),
        add_special_tokens=bool(body.add_special_tokens),
        scheduling=lower_scheduling(body),
        output=lower_output(body),
        max_tokens_field=field,
    )


def top_logprobs(body: ChatRequest) -> int | None:
    """How many alternatives each row has; None when no rows were asked for."""
    if body.logprobs:
        return body.top_logprobs or 0
    if body.top_logprobs:
        raise InvalidField("top_logprobs needs logprobs to be true.", "top_logprobs")
    return None


def _message(message: ChatMessage) -> Message:
    for field in UNBUILT_IN_MESSAGE:
        if getattr(message, field):
            raise NotSupported(f"messages with {field} are not supported by this server yet.", "messages")
    content = message.content
    if content is None or isinstance(content, str):
        return Message(message.role, content or "", message.name)
    return Message(message.role, [_text(part) for part in content], message.name)


def _text(part: ContentPart) -> str:
    if part.type != "text":
        raise NotSupported("messages with other content than text are not supported by this server yet.", "messages")
    if part.text is None:
        raise InvalidField("A content part of type text needs a text.", "messages")
    return part.text
