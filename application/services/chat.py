"""Chat completion."""

from msgspec import Struct

from application.options import ServerOptions
from application.requests import Chat
from application.services.choices import Choices
from application.services.generation import GenerateText
from application.services.prepare import Prepare
from domain.chat import answering_role, echo_of


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

    def __init__(self, prepare: Prepare, generate: GenerateText, options: ServerOptions) -> None:
        self._prepare = prepare
        self._generate = generate
        self._options = options

    async def __call__(self, chat: Chat) -> Reply:
        prepared = await self._prepare.chat(chat)
        choices = await self._generate([prepared], chat.output)
        return reply(chat, choices, prepared.prompt.text, self._options.response_role)


def reply(chat: Chat, choices: Choices, prompt_text: str | None, response_role: str) -> Reply:
    messages, rendering = chat.conversation.messages, chat.conversation.rendering
    role = answering_role(messages, rendering, response_role)
    return Reply(
        choices=choices,
        role=role,
        echo=echo_of(messages, role) if chat.echo else "",
        prompt_text=prompt_text if chat.return_prompt_text else None,
    )
