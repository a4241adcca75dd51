"""Chat completion."""

from application.requests import Chat
from application.services.choices import Choices
from application.services.generation import FieldNames, GenerateText
from application.services.render import Render


class CompleteChat:
    """Answers a conversation."""

    def __init__(self, render: Render, generate: GenerateText) -> None:
        self._render = render
        self._generate = generate

    async def __call__(self, chat: Chat) -> Choices:
        prompt = self._render.chat(chat.messages, chat.add_special_tokens)
        fields = FieldNames(prompt="messages", alternatives="top_logprobs", max_tokens=chat.max_tokens_field)
        return await self._generate(chat, {chat.request_id: prompt}, fields)
