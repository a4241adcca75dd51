"""The model's tokens, read from its tokenizer file without any of Northbound's code."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer

PLACEHOLDER = "token_id:"


class Vocabulary:
    """Texts and bytes of a byte-level BPE tokenizer's tokens."""

    def __init__(self, model: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._added = {
            entry["id"]: entry["content"]
            for entry in json.loads((model / "tokenizer.json").read_text())["added_tokens"]
        }
        self._byte_of = dict(_byte_letters())

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text).ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text, special tokens left out."""
        return self._tokenizer.decode(list(token_ids), skip_special_tokens=True)

    def bytes_of(self, token_id: int) -> bytes:
        """The token's own bytes, however little of a character they are."""
        if token_id in self._added:
            return self._added[token_id].encode()
        return bytes(self._byte_of[letter] for letter in self._tokenizer.id_to_token(token_id))

    def text_offsets(self, token_ids: Iterable[int]) -> list[int]:
        """Where the text of each token starts, in characters, in a text without special tokens that is sound UTF-8 but
        for its end. A token's text is empty while the bytes so far end inside a character; the one that completes
        it has all that was held."""
        offset, held, offsets = 0, b"", []
        for token_id in token_ids:
            offsets.append(offset)
            if token_id not in self._added:
                held += self.bytes_of(token_id)
                try:
                    offset += len(held.decode())
                except UnicodeDecodeError:
                    continue
                held = b""
        return offsets


def token_id(placeholder: str) -> int:
    """The id that a placeholder shows. Fails for anything else."""
    digits = placeholder.removeprefix(PLACEHOLDER)
    assert placeholder.startswith(PLACEHOLDER), f"{placeholder!r} is no placeholder"
    assert digits.isascii(), f"{placeholder!r} is no placeholder"
    assert digits == str(int(digits)), f"{placeholder!r} is no placeholder"
    return int(digits)


def _byte_letters() -> Iterable[tuple[str, int]]:
    """The letters in which byte-level BPE writes bytes: printable Latin-1 as itself, the others from U+0100 on."""
    unprintable = 0
    for byte in range(256):
        if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or 0xAE <= byte <= 0xFF:
            yield chr(byte), byte
        else:
            yield chr(0x100 + unprintable), byte
            unprintable += 1
