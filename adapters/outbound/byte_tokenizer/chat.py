"""Conversations in the special tokens of the byte vocabulary."""

from collections.abc import Sequence
from typing import Final

from application.ports.chat_renderer import ChatRenderer, ConversationNotRenderable
from domain.chat import Message, Rendering

ROLES: Final = ("system", "user", "assistant")
ASSISTANT: Final = "assistant"
FIELDS_OF_THEIR_OWN: Final = ("reasoning_effort",)
"""Variables of templates that a caller gives in a field of that name."""


class PlainChat(ChatRenderer):
    """`<|system|>text<|user|>text<|assistant|>text<|eos|><|user|>text<|assistant|>`. It has no template, so it refuses
    whatever is meant for one."""

    def render(self, messages: Sequence[Message], rendering: Rendering) -> str:
        if not messages:
            raise ConversationNotRenderable("A conversation has at least one message.", "messages")
        _refuse_what_is_for_templates(rendering)
        text = "".join(map(_turn, messages))
        if rendering.continue_final_message:
            return text.removesuffix(_end(messages[-1]))
        return text + f"<|{ASSISTANT}|>" if rendering.add_generation_prompt else text


def _refuse_what_is_for_templates(rendering: Rendering) -> None:
    given = {
        **{name: name in rendering.kwargs for name in FIELDS_OF_THEIR_OWN},
        "chat_template_kwargs": bool(rendering.kwargs),
        "chat_template": rendering.template is not None,
        "documents": bool(rendering.documents),
    }
    for field, is_given in given.items():
        if is_given:
            raise ConversationNotRenderable(f"{field} is of no use here: the model has no chat template.", field)


def _turn(message: Message) -> str:
    if message.role not in ROLES:
        known = ", ".join(ROLES)
        raise ConversationNotRenderable(f"Unknown role {message.role[:40]!r}. Known roles: {known}.", "messages")
    text = message.content if isinstance(message.content, str) else "\n".join(message.content)
    return f"<|{message.role}|>{text}{_end(message)}"


def _end(message: Message) -> str:
    return "<|eos|>" if message.role == ASSISTANT else ""
