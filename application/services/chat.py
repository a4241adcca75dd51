"""Chat completion."""

from collections.abc import Sequence

from msgspec import Struct

from application.services.generation import FieldNames, GenerateText, TextGeneration, TextOutput
from application.services.render import Render
from domain.chat import Message
from domain.sampling import SamplingParams


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation to answer, and how. Nothing of it depends on how this server is set up."""

    request_id: str
    messages: Sequence[Message]
    sampling: SamplingParams
    output: TextOutput
    max_tokens_field: str = "max_tokens"
    """Which of the two fields that limit the answer the caller used."""


class CompleteChat:
    """Answers a conversation."""

    def __init__(self, render: Render, generate: GenerateText) -> None:
        self._render = render
        self._generate = generate

    async def __call__(self, chat: Chat) -> TextGeneration:
        prompt = self._render.chat(chat.messages)
        fields = FieldNames(prompt="messages", alternatives="top_logprobs", max_tokens=chat.max_tokens_field)
        return await self._generate(chat.request_id, prompt, chat.sampling, chat.output, fields)
