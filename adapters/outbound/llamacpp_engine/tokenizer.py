"""The vocabulary of a model file, read by llama.cpp itself: ids are its own by construction."""

import re
from collections.abc import Sequence
from typing import Final

from adapters.outbound.llamacpp_engine.model import GgufModel
from application.ports.tokenizer import Tokenizer
from domain.token_text import TokenPiece

_LACKING: Final = TokenPiece.of(b"")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class GgufTokenizer(Tokenizer):
    """Pieces are read once, when the model is loaded."""

    def __init__(self, model: GgufModel) -> None:
        self._vocab = vocab = model.vocab
        library = model.library
        special = library.LLAMA_TOKEN_ATTR_CONTROL | library.LLAMA_TOKEN_ATTR_UNKNOWN
        self._pieces = [
            TokenPiece.of(vocab.token_to_piece_bytes(token_id, special=True), bool(vocab.get_attr(token_id) & special))
            for token_id in range(model.vocab_size)
        ]
        self._longest_entry = max(len(piece.content) for piece in self._pieces)  # in bytes, which are no fewer
        # SentencePiece vocabularies put a space before a text, which is none of it
        self._adds_space = self._joined(self._tokenize("x", add_special=False)) == b" x"

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    @property
    def longest_entry(self) -> int:
        return self._longest_entry

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return self._tokenize(_SURROGATE.sub("\ufffd", text), add_special_tokens)

    def encode_offsets(self, text: str, *, add_special_tokens: bool) -> list[int]:
        content = _SURROGATE.sub("\ufffd", text).encode()
        starts = self._starts(self.encode(text, add_special_tokens=add_special_tokens), content)
        characters = _characters(content)
        return [characters[start] for start in starts]

    def decode(self, token_ids: Sequence[int]) -> str:
        pieces = [self.starting_piece(token_id) for token_id in token_ids[:1]]
        pieces += [self.piece(token_id) for token_id in token_ids[1:]]
        return b"".join([piece.content for piece in pieces]).decode(errors="replace")

    def entry(self, token_id: int) -> str:
        piece = self.piece(token_id)
        return "".join([f"<0x{byte:02X}>" for byte in piece.content]) if piece.text is None else piece.text

    def piece(self, token_id: int) -> TokenPiece:
        return self._pieces[token_id] if 0 <= token_id < len(self._pieces) else _LACKING

    def starting_piece(self, token_id: int) -> TokenPiece:
        piece = self.piece(token_id)
        if not self._adds_space or piece.is_special or not piece.text or not piece.content.startswith(b" "):
            return piece
        return TokenPiece.of(piece.content[1:])

    def _tokenize(self, text: str, add_special: bool) -> list[int]:
        token_ids: list[int] = self._vocab.tokenize(text, add_special, True)
        return token_ids

    def _joined(self, token_ids: Sequence[int]) -> bytes:
        return b"".join([self._pieces[token_id].content for token_id in token_ids])

    def _starts(self, token_ids: Sequence[int], content: bytes) -> list[int]:
        """Where each token starts in `content`, in bytes: behind the one before it, unless it is no part of it."""
        starts: list[int] = []
        at = 0
        for token_id in token_ids:
            piece = self._pieces[token_id].content
            if not content.startswith(piece, at):
                bare = piece.lstrip(b" ")
                found = content.find(bare, at) if bare and not self._pieces[token_id].is_special else -1
                if found < 0:
                    starts.append(at)
                    continue
                at, piece = found, bare
            starts.append(at)
            at += len(piece)
        return starts


def _characters(content: bytes) -> list[int]:
    """For each byte of a text, and for its end, which character it belongs to."""
    numbers: list[int] = []
    count = -1
    for byte in content:
        count += byte & 0xC0 != 0x80
        numbers.append(count)
    return [*numbers, count + 1]
