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

    def text(self, prompt: str | Sequence[int], locate: bool = False) -> Prompt:
        """With `locate`, where each token of a text starts is told, if its tokens do not tell by themselves."""
        if not isinstance(prompt, str):
            return Prompt(prompt)
        token_ids = self._tokenizer.encode(prompt, add_special_tokens=True)
        if locate and self._joined(token_ids) != prompt.encode():
            return Prompt(token_ids, prompt, self._tokenizer.encode_offsets(prompt, add_special_tokens=True))
        return Prompt(token_ids, prompt)

    def chat(self, messages: Sequence[Message]) -> Prompt:
        """The template writes every special token itself, so none are added."""
        text = self._chat_renderer.render(messages)
        return Prompt(self._tokenizer.encode(text, add_special_tokens=False), text)

    def _joined(self, token_ids: Sequence[int]) -> bytes:
        pieces = [self._tokenizer.piece(token_id) for token_id in token_ids]
        pieces[:1] = [self._tokenizer.starting_piece(token_id) for token_id in token_ids[:1]]
        return b"".join([piece.content for piece in pieces])
