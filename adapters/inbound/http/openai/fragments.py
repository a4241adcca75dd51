"""JSON of a token, made once per id: the same bytes serve every row in which the token stands."""

from typing import NamedTuple

import msgspec

from domain.detokenizer import PieceOf
from domain.logprobs import placeholder
from domain.token_text import TokenPiece, text_after

encode = msgspec.json.Encoder().encode

MOST_FRAGMENTS = 1 << 16
"""Fragments kept per display; a larger vocabulary is rarely seen whole."""


class Fragment(NamedTuple):
    """A token in chat's form, cut where its logprob goes, and in the two forms that completions need."""

    before: bytes
    after: bytes
    token: bytes
    """As a JSON string: an item of `tokens`, and the key of the token at its own position."""
    key: bytes
    """As a key among alternatives, where no two of a position may be the same."""


def make_fragment(shown: str, key: str, content: bytes) -> Fragment:
    """`shown` is the token's text or placeholder; `content` its own bytes, the same in both displays."""
    token = encode(shown)
    return Fragment(b'{"token":' + token + b',"logprob":', b',"bytes":' + encode(list(content)), token, encode(key))


class TokenDisplay:
    """How tokens are shown in logprobs: by text, or by id. There is one of each per server."""

    def __init__(self, piece_of: PieceOf, show_token_ids: bool) -> None:
        self.piece_of = piece_of
        self.shows_token_ids = show_token_ids
        self._fragments: dict[int, Fragment] = {}

    def fragment(self, token_id: int) -> Fragment:
        """The token as it is shown behind a whole character."""
        fragment = self._fragments.get(token_id)
        if fragment is None:
            if len(self._fragments) >= MOST_FRAGMENTS:
                self._fragments.clear()
            fragment = self._fragments[token_id] = self._make(token_id)
        return fragment

    def sampled(self, token_id: int, text: str, context: bytes) -> Fragment:
        """The token at a position, where it reads as `text` behind `context`."""
        if self.shows_token_ids or (not context and self.piece_of(token_id).text == text):
            return self.fragment(token_id)
        return make_fragment(text, text, self.piece_of(token_id).content)

    def alternative(self, token_id: int, context: bytes, hides_special: bool) -> Fragment:
        """A token that might have stood at a position, read behind the same `context` as the one that did."""
        if not context or self.shows_token_ids:
            return self.fragment(token_id)
        piece = self.piece_of(token_id)
        if hides_special and piece.is_special:
            return self.fragment(token_id)
        text = text_after(context, piece)
        return make_fragment(text, text or _key_without_text(token_id, piece), piece.content)

    def _make(self, token_id: int) -> Fragment:
        piece = self.piece_of(token_id)
        if self.shows_token_ids:
            shown = placeholder(token_id)
            return make_fragment(shown, shown, piece.content)
        text = text_after(b"", piece)
        return make_fragment(text, text or _key_without_text(token_id, piece), piece.content)


def _key_without_text(token_id: int, piece: TokenPiece) -> str:
    """OpenAI's old notation for part of a character, and the placeholder for an id that the tokenizer lacks."""
    if not piece.content:
        return placeholder(token_id)
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece.content)
