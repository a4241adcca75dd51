"""A conversation, how it is to be written as a prompt, and who answers it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct


class Message(Struct, frozen=True):
    """One turn. Its content is text, or text in parts where the caller sent parts."""

    role: str
    content: str | Sequence[str]
    name: str | None = None
    """Who speaks, where several have the same role; templates may use it."""
    reasoning: str | None = None
    """What an assistant thought before it said this."""
    tool_call_id: str | None = None
    """Which call a tool's result answers."""

    @property
    def text(self) -> str:
        """The content as one text: parts are lines, and empty ones none."""
        return self.content if isinstance(self.content, str) else "\n".join(filter(None, self.content))


class Rendering(Struct, frozen=True, kw_only=True):
    """How a conversation becomes a prompt, where it is not just the model's own template over the messages."""

    template: str | None = None
    """In place of the model's own: Jinja, or the name of another one that the model comes with."""
    kwargs: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Variables of the template, by name. One that it does not know does nothing."""
    documents: Sequence[Mapping[str, str]] | None = None
    """What the template may quote from."""
    add_generation_prompt: bool = True
    """Whether the prompt ends with the start of an answer."""
    continue_final_message: bool = False
    """Whether it ends inside the final message, for the model to go on with. Not with a start of an answer."""


def answering_role(messages: Sequence[Message], rendering: Rendering, response_role: str) -> str:
    """Whose message the output is. Same as vLLM: without a start of an answer it is still the final message's."""
    return response_role if rendering.add_generation_prompt else messages[-1].role


def echo_of(messages: Sequence[Message], role: str) -> str:
    """The part of the conversation that an echo repeats: the final message, where it is of who answers."""
    return messages[-1].text if messages[-1].role == role else ""
