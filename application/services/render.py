"""From a request to the prompt it means. Knows no server option: it runs as well without a server."""

from collections.abc import Sequence

from application.ports.chat_renderer import ChatRenderer
from application.ports.tokenizer import Tokenizer
from application.requests import Conversation
from application.services.aside import aside
from domain.errors import RequestError
from domain.prompt import Prompt, Room

MOST_BAD_WORDS = 128
MOST_BAD_WORD_TOKENS = 1024
"""Same as vLLM."""


MESSAGE = 16
"""Characters that a message is worth beside its text."""


class BadWordNotUsable(RequestError):
    """A word that must not come up has no tokens, or there are too many."""


class Render:
    """Turns what a client sends into token ids."""

    def __init__(self, tokenizer: Tokenizer, chat_renderer: ChatRenderer) -> None:
        self._tokenizer = tokenizer
        self._chat_renderer = chat_renderer

    def text(
        self,
        prompt: str | Sequence[int],
        add_special_tokens: bool = True,
        locate: bool = False,
        room: Room | None = None,
    ) -> Prompt:
        """With `locate`, where each token of a text starts is told, if its tokens do not tell by themselves.

        Raises PromptTooLong for a text that cannot fit into the `room` there is."""
        if not isinstance(prompt, str):
            return Prompt(prompt)
        if room is not None:
            room.check(prompt, self._tokenizer.longest_entry)
        token_ids = self._tokenizer.encode(prompt, add_special_tokens=add_special_tokens)
        if locate and self._joined(token_ids) != prompt.encode():
            offsets = self._tokenizer.encode_offsets(prompt, add_special_tokens=add_special_tokens)
            return Prompt(token_ids, prompt, offsets)
        return Prompt(token_ids, prompt)

    def chat(self, conversation: Conversation, room: Room | None = None) -> Prompt:
        text = self._chat_renderer.render(conversation.messages, conversation.rendering)
        return self.text(text, conversation.add_special_tokens, room=room)

    async def texts(
        self,
        prompts: Sequence[str | Sequence[int]],
        add_special_tokens: bool = True,
        locate: bool = False,
        room: Room | None = None,
    ) -> Sequence[Prompt]:
        """Each as `text` reads it, with long ones holding nobody up."""
        return await aside(
            sum(map(len, prompts)), lambda: [self.text(prompt, add_special_tokens, locate, room) for prompt in prompts]
        )

    async def conversation(self, conversation: Conversation, room: Room | None = None) -> Prompt:
        """As `chat` reads it, with long ones holding nobody up."""
        length = sum(len(message.text) + MESSAGE for message in conversation.messages)
        return await aside(length, lambda: self.chat(conversation, room))

    def banned(self, words: Sequence[str]) -> list[list[int]]:
        """Token sequences that write these words, at the start of a text and in the middle of one.

        Same as vLLM: a word behind a space counts where the space makes another first token of as many tokens.
        Raises BadWordNotUsable."""
        distinct = dict.fromkeys(words)
        sequences: list[list[int]] = []
        for word in distinct if len(distinct) <= MOST_BAD_WORDS else ():
            bare = self._tokenizer.encode(word.lstrip(), add_special_tokens=False)
            if not bare:
                raise BadWordNotUsable("bad_words must each have at least one token.", "bad_words")
            spaced = self._tokenizer.encode(" " + word.lstrip(), add_special_tokens=False)
            sequences.append(bare)
            if spaced and spaced[0] != bare[0] and len(spaced) == len(bare):
                sequences.append(spaced)
        if max(len(distinct), len(sequences)) > MOST_BAD_WORDS or sum(map(len, sequences)) > MOST_BAD_WORD_TOKENS:
            message = (
                f"bad_words take at most {MOST_BAD_WORDS} token sequences of {MOST_BAD_WORD_TOKENS} tokens in all."
            )
            raise BadWordNotUsable(message, "bad_words")
        return sequences

    def _joined(self, token_ids: Sequence[int]) -> bytes:
        pieces = [self._tokenizer.piece(token_id) for token_id in token_ids]
        pieces[:1] = [self._tokenizer.starting_piece(token_id) for token_id in token_ids[:1]]
        return b"".join([piece.content for piece in pieces])
