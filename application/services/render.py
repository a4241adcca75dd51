"""From a request to the prompt it means. Knows no server option: it runs as well without a server."""

from collections.abc import Sequence

from application.ports.chat_renderer import ChatRenderer
from application.ports.tokenizer import Tokenizer
from domain.chat import Message
from domain.prompt import Prompt


class Render:
    """Turns what a client sends into token ids."""

    def __init__(self, tokenizer: Tokenizer, chat_renderer: ChatRenderer) -> None:
        self._tokenizer = tokenizer
        self._chat_renderer = chat_renderer

    def text(self, prompt: str | Sequence[int]) -> Prompt:
        if isinstance(prompt, str):
            return Prompt(self._tokenizer.encode(prompt, add_special_tokens=True), prompt)
        return Prompt(prompt)

    def chat(self, messages: Sequence[Message]) -> Prompt:
        """The template writes every special token itself, so none are added."""
        text = self._chat_renderer.render(messages)
        return Prompt(self._tokenizer.encode(text, add_special_tokens=False), text)
