"""One token per byte."""

import re
from collections.abc import Sequence
from typing import Final

from application.ports.tokenizer import Tokenizer
from domain.token_text import TokenPiece

BYTES: Final = 256
SPECIAL_TOKENS: Final = ("<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>", "<|system|>")
"""They follow the bytes, in this order."""

EOS_TOKEN_ID: Final = BYTES + SPECIAL_TOKENS.index("<|eos|>")
VOCAB_SIZE: Final = BYTES + len(SPECIAL_TOKENS)

_SPECIAL_IDS: Final = {content: BYTES + index for index, content in enumerate(SPECIAL_TOKENS)}
_SPECIAL: Final = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_LACKING: Final = TokenPiece.of(b"")
_PIECES: Final = [TokenPiece.of(bytes([byte])) for byte in range(BYTES)] + [
    TokenPiece.of(content.encode(), is_special=True) for content in SPECIAL_TOKENS
]


class ByteTokenizer(Tokenizer):
    """The ids 0 to 255 are the bytes of a text in UTF-8; the special tokens follow. Nothing is ever added to a text."""

    @property
    def vocab_size(self) -> int:
        return VOCAB_SIZE

    @property
    def longest_entry(self) -> int:
        return max(map(len, SPECIAL_TOKENS))

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:  # noqa: ARG002 - there are none to add
        token_ids: list[int] = []
        for part in _SPECIAL.split(text):
            if part in _SPECIAL_IDS:
                token_ids.append(_SPECIAL_IDS[part])
            else:
                token_ids += _utf8(part)
        return token_ids

    def encode_offsets(self, text: str, *, add_special_tokens: bool) -> list[int]:  # noqa: ARG002
        offsets: list[int] = []
        offset = 0
        for part in _SPECIAL.split(text):
            if part in _SPECIAL_IDS:
                offsets.append(offset)
            else:
                for index, character in enumerate(part):
                    offsets += [offset + index] * len(_utf8(character))
            offset += len(part)
        return offsets

    def decode(self, token_ids: Sequence[int]) -> str:
        return b"".join([self.piece(token_id).content for token_id in token_ids]).decode(errors="replace")

    def entry(self, token_id: int) -> str:
        piece = self.piece(token_id)
        return f"<0x{token_id:02X}>" if piece.text is None else piece.text

    def piece(self, token_id: int) -> TokenPiece:
        return _PIECES[token_id] if 0 <= token_id < VOCAB_SIZE else _LACKING

    def starting_piece(self, token_id: int) -> TokenPiece:
        return self.piece(token_id)


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # half a surrogate pair has no UTF-8: as wherever bytes are no text, U+FFFD stands for it
        return _SURROGATE.sub("\ufffd", text).encode()
