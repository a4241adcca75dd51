"""`POST /v1/chat/completions` as it comes in."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from adapters.inbound.http.openai.sampling import Int64, SamplingFields, Unbuilt

ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class ContentPart(Struct):
    """Of the kinds of part, text is served."""

    type: str
    text: str | None = None


class ChatMessage(Struct):
    role: str
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: Any = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    """The older name of reasoning, which wins."""
    function_call: Any = None
    audio: Any = None
    refusal: Any = None
    tools: Any = None


class ChatRequest(SamplingFields, kw_only=True):
    messages: list[ChatMessage]
    max_tokens: Int64 | None = None
    max_completion_tokens: Int64 | None = None
    """Wins over max_tokens, which OpenAI deprecates."""
    logprobs: bool | None = None
    top_logprobs: Int64 | None = None
    echo: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    documents: list[dict[str, str]] | None = None
    reasoning_effort: ReasoningEffort | None = None
    return_prompt_text: bool | None = None
    include_reasoning: bool | None = None
    """Without effect, as is the next: nothing tells reasoning or tool calls from text."""
    parallel_tool_calls: bool | None = None

    audio: Unbuilt = None
    best_of: Unbuilt = 1
    function_call: Unbuilt = "none"
    functions: Unbuilt = None
    media_io_kwargs: Unbuilt = msgspec.field(default_factory=dict)
    mm_processor_kwargs: Unbuilt = msgspec.field(default_factory=dict)
    modalities: Unbuilt = msgspec.field(default_factory=lambda: ["text"])
    moderation: Unbuilt = None
    prediction: Unbuilt = None
    prompt: Unbuilt = None
    suffix: Unbuilt = None
    tool_choice: Unbuilt = "none"
    tools: Unbuilt = None
    verbosity: Unbuilt = None
    web_search_options: Unbuilt = None
