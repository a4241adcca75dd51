"""Writing a conversation as one prompt."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from domain.chat import Message, Rendering
from domain.errors import RequestError


class ConversationNotRenderable(RequestError):
    """The chat template does not take this conversation or what comes with it, or there is no template."""


class ChatRenderer(Protocol):
    """The chat template of one model."""

    @abstractmethod
    def render(self, messages: Sequence[Message], rendering: Rendering) -> str:
        """The prompt that the template makes of the conversation: with the start of an answer at its end, with the end
        of the final message if that is to be continued, or just the conversation.

        Raises ConversationNotRenderable with `param` messages, whatever the template does; with `param` chat_template
        if the one in `rendering` is none, and with that of any other part of it that this renderer has no use for."""
