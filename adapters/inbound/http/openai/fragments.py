"""JSON of a token, made once per id: the same bytes serve every row in which the token stands."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from domain.detokenizer import PieceOf
from domain.logprobs import placeholder
from domain.token_text import TokenPiece, text_after

encode = msgspec.json.Encoder().encode

MOST_FRAGMENTS = 1 << 16
"""Fragments kept of each kind and display; a larger vocabulary is rarely seen whole."""

LARGEST_ID = 1 << 20
"""Of tokens whose fragments are kept; no vocabulary is as large."""

Key = TypeVar("Key")
Made = TypeVar("Made")


class Fragment(Struct, frozen=True, gc=False):
    """A token as JSON, in the forms that chat and completions need. A format has `%b` where a logprob goes."""

    shown: str
    token: bytes
    """A JSON string: an item of `tokens`, and what is called `decoded_token`."""
    entry: bytes
    """Format of an entry among chat's alternatives."""
    opening: bytes
    """Format of an item of chat's `content`, up to its alternatives."""
    at_position: bytes
    """Format of a token's own score in completions."""
    as_alternative: bytes
    """Format of its score beside another's, where no two may have the same key."""


def make_fragment(shown: str, key: str, content: bytes) -> Fragment:
    """`shown` is the token's text or placeholder; `content` its own bytes, the same in both displays."""
    token = encode(shown)
    literal = token.replace(b"%", b"%%")
    score = b'{"token":' + literal + b',"logprob":%b,"bytes":' + encode(list(content))
    return Fragment(
        shown,
        token,
        score + b"}",
        score + b',"top_logprobs":[',
        literal + b":%b",
        encode(key).replace(b"%", b"%%") + b":%b",
    )


class Kept(dict[Key, Made]):
    """What is made of each key when it is first asked for by [], and kept until there are too many."""

    def __init__(self, make: Callable[[Key], Made], most: int = MOST_FRAGMENTS) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def __missing__(self, key: Key) -> Made:
        if len(self) >= self._most:
            self.clear()
        made = self[key] = self._make(key)
        return made


class KeptById:
    """The same of token ids, many at a time, in a list: to find one of a whole vocabulary in a dict takes three times
    as many looks into memory that nobody has looked at lately."""

    def __init__(self, make: Callable[[int], bytes], most: int = MOST_FRAGMENTS) -> None:
        self._make = make
        self._most = most
        self._kept: list[bytes | None] = []
        self._count = 0

    def of(self, token_ids: Sequence[int]) -> list[bytes]:
        try:
            found = list(map(self._kept.__getitem__, token_ids))
        except IndexError:
            pass
        else:
            if None not in found and min(token_ids, default=0) >= 0:
                return found  # type: ignore[return-value]  # none of them is None
        return list(map(self._one, token_ids))

    def _one(self, token_id: int) -> bytes:
        if not 0 <= token_id < LARGEST_ID:
            return self._make(token_id)
        kept = self._kept
        if token_id >= len(kept):
            kept += [None] * (token_id + 1 - len(kept))
        made = kept[token_id]
        if made is None:
            if self._count >= self._most:
                kept[:] = [None] * len(kept)
                self._count = 0
            made = kept[token_id] = self._make(token_id)
            self._count += 1
        return made


class TokenDisplay:
    """How tokens are shown in logprobs: by text, or by id. There is one of each per server."""

    def __init__(self, piece_of: PieceOf, show_token_ids: bool) -> None:
        self.piece_of = piece_of
        self.shows_token_ids = show_token_ids
        self._fragments = Kept(self._make)
        self._entries = KeptById(lambda token_id: self._make(token_id).entry)
        self._as_alternatives = KeptById(lambda token_id: self._make(token_id).as_alternative)
        self._in_context = Kept(self._make_in_context)

    def sampled(self, token_id: int, text: str, context: bytes) -> Fragment:
        """The token at a position, where it reads as `text` behind `context`."""
        by_itself = not context or self.shows_token_ids
        fragment = self._fragments[token_id] if by_itself else self._in_context[context, token_id]
        if self.shows_token_ids or fragment.shown == text:
            return fragment
        return make_fragment(text, text, self.piece_of(token_id).content)

    def alternative(self, token_id: int, context: bytes, hides_special: bool) -> Fragment:
        """A token that might have stood at a position, read behind the same `context` as the one that did."""
        if not context or self.shows_token_ids or (hides_special and self.piece_of(token_id).is_special):
            return self._fragments[token_id]
        return self._in_context[context, token_id]

    def entries(self, row: Sequence[int], context: bytes, hides_special: bool) -> list[bytes]:
        """`Fragment.entry` of each token of a row."""
        if not context or self.shows_token_ids:
            return self._entries.of(row)
        return [self.alternative(token_id, context, hides_special).entry for token_id in row]

    def as_alternatives(self, row: Sequence[int], context: bytes, hides_special: bool) -> list[bytes]:
        """`Fragment.as_alternative` of each token of a row."""
        if not context or self.shows_token_ids:
            return self._as_alternatives.of(row)
        return [self.alternative(token_id, context, hides_special).as_alternative for token_id in row]

    def _make(self, token_id: int) -> Fragment:
        """As it is shown behind a whole character."""
        if self.shows_token_ids:
            shown = placeholder(token_id)
            return make_fragment(shown, shown, self.piece_of(token_id).content)
        return self._make_in_context((b"", token_id))

    def _make_in_context(self, key: tuple[bytes, int]) -> Fragment:
        context, token_id = key
        piece = self.piece_of(token_id)
        text = text_after(context, piece)
        return make_fragment(text, text or _key_without_text(token_id, piece), piece.content)


def _key_without_text(token_id: int, piece: TokenPiece) -> str:
    """OpenAI's old notation for part of a character, and the placeholder for an id that the tokenizer lacks."""
    if not piece.content:
        return placeholder(token_id)
    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece.content)
