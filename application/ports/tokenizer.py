"""Text to tokens and back."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Protocol

from domain.token_text import TokenPiece


class Tokenizer(Protocol):
    """The vocabulary of one model."""

    @property
    @abstractmethod
    def longest_entry(self) -> int:
        """Characters of the longest entry, as the vocabulary writes it. No token stands for more of a text, but for
        one that stands for whatever the vocabulary does not know, or for the spaces around it."""

    @abstractmethod
    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Token ids of `text`; special tokens written in it are recognised. `add_special_tokens` adds those that
        the model's own configuration puts around a text, such as a beginning-of-text token."""

    @abstractmethod
    def encode_offsets(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """For each token that `encode` gives, where it starts in `text`, in characters; added ones where they
        stand, at the start or the end."""

    @abstractmethod
    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of a whole token sequence, special tokens shown. Never fails: bytes that are no UTF-8 read as
        U+FFFD, ids that the vocabulary lacks as nothing."""

    @abstractmethod
    def entry(self, token_id: int) -> str:
        """How the vocabulary itself writes an id, in whatever notation it has. Empty for an id that it lacks."""

    @abstractmethod
    def piece(self, token_id: int) -> TokenPiece:
        """The entry of one id: the same object each time. Its content is the token's own bytes as it stands inside a
        text: the raw bytes of a part of a character, the leading space of a word, the content of an added token.
        An id that the vocabulary lacks has empty content."""

    @abstractmethod
    def starting_piece(self, token_id: int) -> TokenPiece:
        """The same entry at the very start of a text, where some vocabularies drop the leading space of a word."""
