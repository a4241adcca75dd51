"""The vocabulary of a Hugging Face model, over the tokenizers library alone."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import tokenizers

from adapters.outbound.hf_tokenizer.fast_encoding import Encode, FastEncodingToCome
from adapters.outbound.hf_tokenizer.vocabulary import VocabularyNotation
from application.ports.tokenizer import Tokenizer
from domain.token_text import TokenPiece

_LACKING: Final = TokenPiece.of(b"")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class HfTokenizer(Tokenizer):
    """Reads each token once, from the vocabulary itself; text is their joined bytes, whatever a decoder makes of it."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        """Truncation and padding that come with the tokenizer are switched off. The first text waits for what a thread
        makes of it until then.

        Raises NotationNotKnown."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._notation = VocabularyNotation(tokenizer)
        self._to_come = FastEncodingToCome(tokenizer)
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self._vocab_size = max(vocabulary.values(), default=-1) + 1
        self._longest_entry = max(map(len, vocabulary), default=0)
        self._pieces = _Pieces(tokenizer, self._notation, self._vocab_size)
        self._kept = self._pieces.kept

    @cached_property
    def _fast_encode(self) -> Encode | None:
        return self._to_come.result()

    @property
    def vocab_size(self) -> int:
        """One more than the highest id, added tokens included."""
        return self._vocab_size

    @property
    def longest_entry(self) -> int:
        return self._longest_entry

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        ids = self._fast_encode(text, add_special_tokens) if self._fast_encode else None
        return self._encode(self._tokenizer.encode_batch_fast, text, add_special_tokens).ids if ids is None else ids

    def encode_offsets(self, text: str, *, add_special_tokens: bool) -> list[int]:
        encoding = self._encode(self._tokenizer.encode_batch, text, add_special_tokens)
        offsets: list[int] = []
        added_at = 0
        for (start, _), is_added in zip(encoding.offsets, encoding.special_tokens_mask, strict=True):
            if is_added:
                offsets.append(added_at)
            else:
                offsets.append(start)
                added_at = len(text)  # what is added from here on is added at the end
        return offsets

    def decode(self, token_ids: Sequence[int]) -> str:
        known = [token_id for token_id in token_ids if self.piece(token_id) is not _LACKING]
        if self._notation.is_separated:
            return self._tokenizer.decode(known, skip_special_tokens=False)
        pieces = [self.starting_piece(token_id) for token_id in known[:1]]
        pieces += [self.piece(token_id) for token_id in known[1:]]
        return b"".join([piece.content for piece in pieces]).decode(errors="replace")

    def entry(self, token_id: int) -> str:
        known = 0 <= token_id < self._vocab_size
        return (self._tokenizer.id_to_token(token_id) if known else None) or ""

    def piece(self, token_id: int) -> TokenPiece:
        if token_id >= 0:
            try:
                return self._kept[token_id] or self._pieces.read(token_id)
            except IndexError:
                pass
        return _LACKING

    def starting_piece(self, token_id: int) -> TokenPiece:
        piece = self.piece(token_id)
        if self._notation.is_byte_level or self._pieces.is_as_written(token_id) or not piece.text:
            return piece
        first = self._notation.read_first(self._tokenizer.id_to_token(token_id) or "")
        return TokenPiece.of(first.encode(), piece.is_special)

    @staticmethod
    def _encode(
        encode_batch: Callable[..., list[tokenizers.Encoding]], text: str, add_special_tokens: bool
    ) -> tokenizers.Encoding:
        # As a batch of one: what encodes a text by itself keeps every other thread waiting.
        try:
            return encode_batch([text], add_special_tokens=add_special_tokens)[0]
        except TypeError:
            # half a surrogate pair has no UTF-8: as wherever bytes are no text, U+FFFD stands for it
            return encode_batch([_SURROGATE.sub("\ufffd", text)], add_special_tokens=add_special_tokens)[0]


class _Pieces:
    """Entries by id, read when they are first asked for. Ids without one are not kept: anyone can make them up."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, notation: VocabularyNotation, vocab_size: int) -> None:
        self.kept: list[TokenPiece | None] = [None] * vocab_size
        """By id. To find one in a dict takes three times as many looks into memory."""
        self._tokenizer = tokenizer
        self._notation = notation
        self._added = tokenizer.get_added_tokens_decoder()
        model = tokenizer.model
        # SentencePiece's user-defined symbols, such as Gemma's runs of spaces, are added tokens that are entries too,
        # written in its alphabet
        self._as_written = {
            token_id
            for token_id, token in self._added.items()
            if notation.is_byte_level or token.special or model.token_to_id(token.content) is None
        }

    def is_as_written(self, token_id: int) -> bool:
        """Whether the token is added: its content is text, in no alphabet."""
        return token_id in self._as_written

    def read(self, token_id: int) -> TokenPiece:
        """Of an id below the size of the vocabulary."""
        entry = self._tokenizer.id_to_token(token_id)
        if entry is None:
            return _LACKING
        added = self._added.get(token_id)
        content = entry.encode() if self.is_as_written(token_id) else self._notation.read(entry)
        piece = self.kept[token_id] = TokenPiece.of(content, added is not None and added.special)
        return piece
