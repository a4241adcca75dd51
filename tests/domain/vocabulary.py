"""A small vocabulary: every byte, two special tokens, and entries that are more or less than a character."""

from functools import cache

from domain.token_text import TokenPiece

EOS = 256
TOOL = 257
PARTY = 258
LETTER_AND_LEAD = 259
TAIL_AND_LETTER = 260
REPLACEMENT = 261
LACKING = 262
WORD = 263

CONTENTS = {
    PARTY: " 🎉".encode(),
    LETTER_AND_LEAD: b"a\xf0",
    TAIL_AND_LETTER: b"\x9f\x8e\x89b",
    REPLACEMENT: "\ufffd".encode(),
    LACKING: b"",
    WORD: b" word",
}
SPECIALS = {EOS: b"<eos>", TOOL: b"<tool>"}


@cache
def piece_of(token_id: int) -> TokenPiece:
    if token_id in SPECIALS:
        return TokenPiece.of(SPECIALS[token_id], is_special=True)
    return TokenPiece.of(CONTENTS[token_id] if token_id in CONTENTS else bytes([token_id]))


def pieces_of(token_ids: list[int]) -> list[TokenPiece]:
    return [piece_of(token_id) for token_id in token_ids]


def byte_tokens(text: str) -> list[int]:
    """`text` in one token per byte."""
    return list(text.encode())
