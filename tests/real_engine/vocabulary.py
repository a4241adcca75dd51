"""The model's tokens, read from its tokenizer file without any of Northbound's code."""

import json
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path

from tokenizers import Tokenizer

PLACEHOLDER = "token_id:"


class Vocabulary:
    """Texts and bytes of a byte-level BPE tokenizer's tokens. Its added tokens are all special."""

    def __init__(self, model: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._added = {
            entry["id"]: entry["content"]
            for entry in json.loads((model / "tokenizer.json").read_text())["added_tokens"]
            if entry["special"]
        }
        self._byte_of = dict(_byte_letters())

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text).ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text, special tokens left out."""
        return self._tokenizer.decode(list(token_ids), skip_special_tokens=True)

    def is_special(self, token_id: int) -> bool:
        return token_id in self._added

    def bytes_of(self, token_id: int) -> bytes:
        """The token's own bytes, however little of a character they are."""
        if token_id in self._added:
            return self._added[token_id].encode()
        return bytes(self._byte_of[letter] for letter in self._tokenizer.id_to_token(token_id))


def placeholder(token_id: int) -> str:
    return f"{PLACEHOLDER}{token_id}"


def token_id(shown: str) -> int:
    """The id that a placeholder shows. Fails for anything else."""
    digits = shown.removeprefix(PLACEHOLDER)
    assert digits.isdecimal(), f"{shown!r} is no placeholder"
    assert shown == placeholder(int(digits)), f"{shown!r} is no placeholder"
    return int(digits)


def as_text(content: bytes) -> str:
    """UTF-8, with U+FFFD for what is not."""
    return content.decode(errors="replace")


def unfinished(content: bytes) -> bytes:
    """What of a character `content` ends with: more bytes could make it whole."""
    for length in (3, 2, 1):
        end = content[-length:]
        if len(end) == length and any(_is_character(end + bytes(rest)) for rest in _CONTINUATIONS):
            return end
    return b""


_CONTINUATIONS = [rest for length in (1, 2, 3) for rest in product((0x80, 0x90, 0xBF), repeat=length)]
"""Ends of characters, one at least for each way in which a character can go on."""


def _is_character(content: bytes) -> bool:
    try:
        return len(content.decode()) == 1
    except UnicodeDecodeError:
        return False


def _byte_letters() -> Iterable[tuple[str, int]]:
    """The letters in which byte-level BPE writes bytes: printable Latin-1 as itself, the others from U+0100 on."""
    unprintable = 0
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte <= 0xFF:
            yield chr(byte), byte
        else:
            yield chr(0x100 + unprintable), byte
            unprintable += 1
