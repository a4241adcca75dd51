"""A chat request as the service takes it. Knows no server option."""

from collections.abc import Sequence
from typing import Any, Protocol

from adapters.inbound.http.openai.chat.schema import ChatMessage, ChatRequest, ContentPart, ReasoningEffort
from adapters.inbound.http.openai.extensions import reused_prompt
from adapters.inbound.http.openai.headers import NO_HEADERS, SchedulingHeaders
from adapters.inbound.http.openai.sampling import (
    InvalidField,
    NotSupported,
    check_max_tokens,
    check_stream,
    lower_output,
    lower_sampling,
    lower_scheduling,
    lower_truncation,
    refuse_unbuilt,
)
from application.model import ModelDefaults
from application.requests import Chat, Conversation
from domain.chat import Message, Rendering
from domain.lora import LoraAdapter

UNBUILT_IN_MESSAGE = (
    "tool_calls",
    "function_call",
    "audio",
    "refusal",
    "tools",
)


def lower(
    body: ChatRequest,
    request_id: str,
    defaults: ModelDefaults,
    headers: SchedulingHeaders = NO_HEADERS,
    adapter: LoraAdapter | None = None,
) -> Chat:
    """Raises RequestError, with the field's name, for what is not served or contradicts itself."""
    refuse_unbuilt(body)
    check_stream(body)
    conversation = lower_conversation(body, body.messages, defaults)
    max_tokens, field = body.max_tokens, "max_tokens"
    if body.max_completion_tokens is not None:
        max_tokens, field = body.max_completion_tokens, "max_completion_tokens"
    check_max_tokens(max_tokens, field)
    return Chat(
        request_id=request_id,
        conversation=conversation,
        # Same as vLLM: what is to be echoed is rendered.
        prompt_token_ids=None if body.echo else reused_prompt(body.kv_transfer_params),
        echo=bool(body.echo),
        return_prompt_text=bool(body.return_prompt_text),
        sampling=lower_sampling(
            body,
            defaults,
            max_tokens=defaults.max_tokens if max_tokens is None else max_tokens,
            logprobs=top_logprobs(body),
            echoed_logprobs=prompt_logprobs(body),
        ),
        bad_words=body.bad_words or (),
        truncation=lower_truncation(body),
        scheduling=lower_scheduling(body, headers),
        adapter=adapter,
        output=lower_output(body),
        max_tokens_field=field,
    )


class ConversationFields(Protocol):
    """How a request wants its messages to become a prompt, whichever endpoint takes it."""

    add_special_tokens: bool | None
    add_generation_prompt: bool | None
    continue_final_message: bool | None
    chat_template: str | None
    chat_template_kwargs: dict[str, Any] | None
    documents: list[dict[str, str]] | None
    reasoning_effort: ReasoningEffort | None


def lower_conversation(
    fields: ConversationFields, messages: Sequence[ChatMessage], defaults: ModelDefaults
) -> Conversation:
    if not messages:
        raise InvalidField("messages must hold at least one message.", "messages")
    return Conversation(
        messages=[_message(message) for message in messages],
        rendering=_rendering(fields, defaults),
        add_special_tokens=bool(fields.add_special_tokens),
    )


def top_logprobs(body: ChatRequest) -> int | None:
    """How many alternatives each row has; None when no rows were asked for."""
    if body.logprobs:
        return body.top_logprobs or 0
    if body.top_logprobs:
        raise InvalidField("top_logprobs needs logprobs to be true.", "top_logprobs")
    return None


def prompt_logprobs(body: ChatRequest) -> int | None:
    """How many alternatives each scored position has; None when no scores were asked for. Same as vLLM: an echo asks
    for those of the answer's rows, even without any rows. A stream has no place to show them."""
    if body.prompt_logprobs is None and body.echo and not body.stream:
        return body.top_logprobs or 0
    return body.prompt_logprobs


def _rendering(body: ConversationFields, defaults: ModelDefaults) -> Rendering:
    given = body.chat_template_kwargs or {}
    if body.chat_template is not None and not defaults.trust_request_chat_template:
        message = "chat_template is only taken by a server with --trust-request-chat-template."
        raise InvalidField(message, "chat_template")
    if given.get("chat_template") is not None:
        message = "chat_template_kwargs cannot hold a chat_template: it has a field of its own."
        raise InvalidField(message, "chat_template_kwargs")
    starts_answer = body.add_generation_prompt is not False
    if body.continue_final_message and starts_answer:
        message = "continue_final_message needs add_generation_prompt to be false."
        raise InvalidField(message, "continue_final_message")
    return Rendering(
        template=body.chat_template or None,
        kwargs=_template_kwargs(body, given, defaults),
        documents=body.documents,
        add_generation_prompt=starts_answer,
        continue_final_message=bool(body.continue_final_message),
    )


def _template_kwargs(body: ConversationFields, given: dict[str, Any], defaults: ModelDefaults) -> dict[str, Any]:
    """Same as vLLM: null and "auto" leave a variable to the server's default, and an effort says whether to think."""
    kwargs = dict(defaults.chat_template_kwargs)
    kwargs |= {name: value for name, value in given.items() if value is not None and value != "auto"}
    if body.reasoning_effort is not None:
        kwargs["reasoning_effort"] = body.reasoning_effort
        if "enable_thinking" not in given:
            kwargs["enable_thinking"] = body.reasoning_effort != "none"
    return kwargs


def _message(message: ChatMessage) -> Message:
    for field in UNBUILT_IN_MESSAGE:
        if getattr(message, field):
            raise NotSupported(f"messages with {field} are not supported by this server yet.", "messages")
    content = message.content
    return Message(
        role=message.role,
        content=[_text(part) for part in content] if isinstance(content, list) else content or "",
        name=message.name,
        reasoning=message.reasoning_content if message.reasoning is None else message.reasoning,
        tool_call_id=message.tool_call_id,
    )


def _text(part: ContentPart) -> str:
    if part.type != "text":
        raise NotSupported("messages with other content than text are not supported by this server yet.", "messages")
    if part.text is None:
        raise InvalidField("A content part of type text in messages needs a text.", "messages")
    return part.text
