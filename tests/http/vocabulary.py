"""Tokens that are hard to read: the byte vocabulary, and entries that are more or less than a character."""

from collections.abc import Mapping
from typing import Final

from adapters.outbound.byte_tokenizer.tokenizer import ByteTokenizer
from domain.token_text import TokenPiece

EOS: Final = 257
ROLE: Final = 259
"""A special token that is not the end: `<|assistant|>`."""

PARTY: Final = 300
LETTER_AND_LEAD: Final = 301
TAIL_AND_LETTER: Final = 302
REPLACEMENT: Final = 303
TRUE: Final = 304
ALSO_TRUE: Final = 305
WORD: Final = 306
NEW_LINES: Final = 307
LACKING: Final = 400

HARD_ENTRIES: Final = {
    PARTY: " 🎉".encode(),
    LETTER_AND_LEAD: b"a\xf0",
    TAIL_AND_LETTER: b"\x9f\x8e\x89b",
    REPLACEMENT: "\ufffd".encode(),
    TRUE: b"true",
    ALSO_TRUE: b"true",
    WORD: b" word",
    NEW_LINES: b"\n\n",
}


class HardTokenizer(ByteTokenizer):
    """Encodes to bytes, as it does without them; but an engine may answer with `entries` too."""

    def __init__(self, entries: Mapping[int, bytes] = HARD_ENTRIES) -> None:
        self._entries = {token_id: TokenPiece.of(content) for token_id, content in entries.items()}

    def piece(self, token_id: int) -> TokenPiece:
        return self._entries.get(token_id) or super().piece(token_id)


def byte_tokens(text: str) -> list[int]:
    return list(text.encode())
