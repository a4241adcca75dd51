"""What the entries of a vocabulary stand for: the bytes each adds to a text.

A vocabulary writes its entries in an alphabet of its own: GPT-2's one character per byte, SentencePiece's `▁` for a
space and `<0xE2>` for a byte, WordPiece's `##` where a word goes on. The tokenizer's decoder can read them, but loses
the bytes of partial characters, so the two notations of bytes are read here. Everything else the decoder itself reads,
one entry at a time in a frame of plain letters, which is how the entry reads in the middle of a text.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tokenizers import Tokenizer, decoders
from tokenizers.decoders import Decoder

FRAME: Final = "x"
"""An entry that every decoder leaves as it is."""

SEPARATING: Final = frozenset({"WordPiece", "BPEDecoder"})
"""Decoders that write something between tokens."""

BESIDE_BYTE_LEVEL: Final = frozenset({"ByteLevel", "ByteFallback", "Fuse"})
"""Decoders that do nothing to the bytes that ByteLevel reads."""

KNOWN: Final = SEPARATING | BESIDE_BYTE_LEVEL | {"Replace", "Strip", "Metaspace"}

_BYTE: Final = re.compile("<0x([0-9A-Fa-f]{2})>")


class NotationNotKnown(Exception):
    """The tokenizer writes its vocabulary in a way that cannot be read byte for byte."""


class VocabularyNotation:
    """How one tokenizer writes its vocabulary."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Raises NotationNotKnown."""
        decoder = tokenizer.decoder or _implied_decoder(tokenizer)
        types = {part["type"] for part in parts(decoder)}
        self.is_byte_level = "ByteLevel" in types
        """Whether entries are written with GPT-2's character for each byte."""
        if unknown := types - (BESIDE_BYTE_LEVEL if self.is_byte_level else KNOWN):
            raise NotationNotKnown(f"its decoder is not supported ({', '.join(sorted(unknown))})")
        self.is_separated = not types or bool(types & SEPARATING)
        """Whether a text is more than its tokens joined, so that only the decoder can write a whole one."""
        self._has_byte_entries = "ByteFallback" in types
        if decoder and not types & {"ByteLevel", "ByteFallback"} and _has_byte_entries(tokenizer):
            self._has_byte_entries = True
            decoder = decoders.Sequence([decoders.ByteFallback(), decoder])
        self._decoder = decoder

    def read(self, entry: str) -> bytes:
        """The bytes that an entry adds in the middle of a text."""
        if self._has_byte_entries and (byte := _BYTE.fullmatch(entry)):
            return bytes([int(byte[1], 16)])
        if self.is_byte_level:
            return _read_byte_level(entry)
        if self._decoder is None:
            return f" {entry}".encode()
        follows = self._decoder.decode([FRAME, FRAME]).removeprefix(FRAME)
        framed = self._decoder.decode([FRAME, entry, FRAME])
        return framed.removeprefix(FRAME).removesuffix(follows).encode()

    def read_first(self, entry: str) -> str:
        """What an entry reads as where a text begins: decoders leave out the space of its first word."""
        return entry if self._decoder is None else self._decoder.decode([entry])


def _read_byte_level(entry: str) -> bytes:
    try:
        return bytes([BYTE_OF[character] for character in entry])
    except KeyError:
        return entry.encode()


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's: printable Latin-1 stands for itself, the other bytes for the characters from U+0100 on, in order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


BYTE_OF: Final = _byte_alphabet()


def _has_byte_entries(tokenizer: Tokenizer) -> bool:
    return None not in (tokenizer.token_to_id("<0x00>"), tokenizer.token_to_id("<0xFF>"))


def _implied_decoder(tokenizer: Tokenizer) -> Decoder | None:
    """A tokenizer without a decoder still tells by how it splits texts in which alphabet it writes them."""
    for part in parts(tokenizer.pre_tokenizer):
        if part["type"] == "ByteLevel":
            return decoders.ByteLevel()
        if part["type"] == "Metaspace":
            return decoders.Metaspace(part["replacement"], part["prepend_scheme"])
    return None


def parts(component: Any) -> Iterator[dict[str, Any]]:
    """What `tokenizer.json` says of a component, or of each that it is a sequence of."""
    if component is None:
        return
    try:
        yield from _flat(json.loads(component.__getstate__()))
    except Exception as error:
        raise NotationNotKnown("a part of it is not of the tokenizers library") from error


def _flat(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if state["type"] != "Sequence":
        yield state
        return
    for sequence in ("normalizers", "pretokenizers", "processors", "decoders"):
        for part in state.get(sequence, ()):
            yield from _flat(part)
