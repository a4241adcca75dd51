"""Writing a conversation as one prompt."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from domain.chat import Message
from domain.errors import RequestError


class ConversationNotRenderable(RequestError):
    """The model's chat template does not take this conversation, or there is no template."""


class ChatRenderer(Protocol):
    """The chat template of one model."""

    @abstractmethod
    def render(self, messages: Sequence[Message]) -> str:
        """The prompt that the model's template makes of the conversation, with the start of an answer at its end.

        Raises ConversationNotRenderable with `param` messages, whatever the template does."""
