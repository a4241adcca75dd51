"""Conversations in the special tokens of the byte vocabulary."""

from collections.abc import Sequence
from typing import Final

from application.ports.chat_renderer import ChatRenderer, ConversationNotRenderable
from domain.chat import Message

ROLES: Final = ("system", "user", "assistant")
ASSISTANT: Final = "assistant"


class PlainChat(ChatRenderer):
    """`<|system|>text<|user|>text<|assistant|>text<|eos|><|user|>text<|assistant|>`."""

    def render(self, messages: Sequence[Message]) -> str:
        if not messages:
            raise ConversationNotRenderable("A conversation has at least one message.", "messages")
        return "".join(map(_turn, messages)) + f"<|{ASSISTANT}|>"


def _turn(message: Message) -> str:
    if message.role not in ROLES:
        known = ", ".join(ROLES)
        raise ConversationNotRenderable(f"Unknown role {message.role[:40]!r}. Known roles: {known}.", "messages")
    text = message.content if isinstance(message.content, str) else "\n".join(message.content)
    end = "<|eos|>" if message.role == ASSISTANT else ""
    return f"<|{message.role}|>{text}{end}"
