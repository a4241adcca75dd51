"""What tokens read as. Text is the joined bytes of tokens, read as UTF-8, so one token can be part of a character."""

import codecs
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

_Utf8Decoder = codecs.getincrementaldecoder("utf-8")


class TokenPiece(Struct, frozen=True, gc=False):
    """One entry of a vocabulary. There is one object per id, not per token."""

    content: bytes
    """Its own bytes: what it adds to a text. Empty for an id that the tokenizer lacks."""
    text: str | None
    """What it reads as after a whole character; None when it is, or holds, part of one."""
    is_special: bool = False

    @classmethod
    def of(cls, content: bytes, is_special: bool = False) -> "TokenPiece":
        try:
            return cls(content, content.decode(), is_special)
        except UnicodeDecodeError:
            return cls(content, None, is_special)


def _decode(decoder: codecs.IncrementalDecoder, content: bytes) -> str:
    text = decoder.decode(content)
    held = decoder.getstate()[0]
    if b"\xed\xa0" <= held <= b"\xed\xbf":
        # Python waits for the third byte of a surrogate, which is no character: it is broken already
        text += decoder.decode(b"", True)
    return text


MOST_HELD = 64
"""Bytes. Text that never gets to the end of a character is garbage; were all of it held, each alternative would repeat
it, and an answer grow with the square of its length."""


class _Reading(NamedTuple):
    text: str
    incomplete: bytes
    """The end that is part of a character."""


def _read(content: bytes) -> _Reading:
    """UTF-8 with each maximal ill-formed part as one U+FFFD; an incomplete end is not read."""
    decoder = _Utf8Decoder("replace")
    return _Reading(_decode(decoder, content), decoder.getstate()[0])


def text_after(held: bytes, piece: TokenPiece) -> str:
    """What `piece` reads as behind `held`, the bytes since the last token that ended on a character.

    Empty while it ends inside a character, even if it holds whole ones too: the token that gets to the end of a
    character, or breaks it, carries all that was held.
    """
    if not held and piece.text is not None:
        return piece.text
    text, incomplete = _read(held + piece.content)
    return "" if incomplete else text


def whole_characters(content: bytes) -> str:
    """What `content` reads as, without the character that it ends inside of."""
    return _read(content).text


def unfinished_character(pieces: Sequence[TokenPiece]) -> bytes:
    """The bytes at the end of `pieces` that are not a whole character yet: what the next token is read behind."""
    decoder = _Utf8Decoder("replace")
    _decode(decoder, b"".join([piece.content for piece in pieces]))
    return decoder.getstate()[0]


class TokenTexts:
    """Reads one token after another, each in the context of those before it."""

    def __init__(self, held: bytes = b"") -> None:
        self.held = held
        """Bytes since the last token that ended on a character: the context of the next token."""

    def read(self, piece: TokenPiece) -> str:
        if not self.held and piece.text is not None:
            return piece.text
        joined = self.held + piece.content
        text, incomplete = _read(joined)
        if incomplete and len(joined) <= MOST_HELD:
            self.held = joined
            return ""
        self.held = incomplete
        return text

    def flush(self) -> str:
        """What is still held, once nothing more comes: its incomplete character is one U+FFFD."""
        held, self.held = self.held, b""
        return held.decode(errors="replace")


class Utf8Reader:
    """Joins bytes to text, holding back only the bytes of an incomplete character."""

    def __init__(self, held: bytes = b"") -> None:
        self._decoder = _Utf8Decoder("replace")
        self._decoder.decode(held)
        self.held = self._decoder.getstate()[0]

    def feed(self, pieces: Sequence[TokenPiece]) -> str:
        if not self.held:
            texts = [piece.text for piece in pieces if piece.text is not None]
            if len(texts) == len(pieces):
                return "".join(texts)
        text = _decode(self._decoder, b"".join([piece.content for piece in pieces]))
        self.held = self._decoder.getstate()[0]
        return text

    def flush(self) -> str:
        """One U+FFFD for a character that never got whole, else nothing."""
        self.held = b""
        return self._decoder.decode(b"", True)
