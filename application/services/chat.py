"""Chat completion."""

from msgspec import Struct

from application.options import ServerOptions
from application.requests import Chat
from application.services.aside import aside
from application.services.choices import Choices
from application.services.generation import FieldNames, GenerateText
from application.services.render import Render
from domain.chat import answering_role, echo_of

MESSAGE = 16
"""Characters that a message is worth beside its text."""


class Reply(Struct, frozen=True, kw_only=True):
    """An answer to a conversation. Whoever receives it closes its choices."""

    choices: Choices
    role: str
    """Whose message each choice is."""
    echo: str
    """What stands before each choice, of the conversation; empty unless an echo was asked for."""
    prompt_text: str | None
    """The conversation as the template wrote it, if that was asked for."""


class CompleteChat:
    """Answers a conversation."""

    def __init__(self, render: Render, generate: GenerateText, options: ServerOptions) -> None:
        self._render = render
        self._generate = generate
        self._options = options

    async def __call__(self, chat: Chat) -> Reply:
        fields = FieldNames(prompt="messages", alternatives="top_logprobs", max_tokens=chat.max_tokens_field)
        room = self._generate.room(chat, fields)
        prompt = await aside(
            sum(len(message.text) + MESSAGE for message in chat.messages),
            lambda: self._render.chat(chat.messages, chat.rendering, chat.add_special_tokens, room),
        )
        role = answering_role(chat.messages, chat.rendering, self._options.response_role)
        return Reply(
            choices=await self._generate(chat, {chat.request_id: prompt}, fields),
            role=role,
            echo=echo_of(chat.messages, role) if chat.echo else "",
            prompt_text=prompt.text if chat.return_prompt_text else None,
        )
