"""JSON of a token, made once per id: the same bytes serve every row in which the token stands."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from adapters.inbound.http.openai.encoding import encode
from adapters.inbound.http.openai.filling import AroundId, FillRows, Format
from domain.detokenizer import PieceOf
from domain.logprobs import placeholder
from domain.token_text import text_after

MOST_FRAGMENTS = 1 << 16
"""Fragments kept of each kind and display; a larger vocabulary is rarely seen whole."""

LARGEST_ID = 1 << 20
"""Of tokens whose fragments are kept; no vocabulary is as large."""

KEYED_PLACEHOLDER: AroundId = (encode(placeholder(0)).removesuffix(b'0"'), b'":%b')
"""Written where it is needed: there is less to write than to look up."""

Key = TypeVar("Key")
Made = TypeVar("Made")


class Fragment(Struct, frozen=True, gc=False):
    """A token as JSON, in the forms that chat and completions need."""

    shown: str
    token: bytes
    """A JSON string: an item of `tokens`."""
    entry: Format
    """An entry among chat's alternatives."""
    opening: Format
    """An item of chat's `content`, up to its alternatives."""
    at_position: Format
    """A token's own score in completions."""
    as_alternative: Format
    """Its score beside another's, where no two may have the same key."""


def make_fragment(shown: str, key: str, content: bytes) -> Fragment:
    """`shown` is the token's text or placeholder; `content` its own bytes, the same in both displays."""
    token = encode(shown)
    literal = token.replace(b"%", b"%%")
    score = _score(literal, content)
    at_position = literal + b":%b"
    as_alternative = at_position if key is shown else keyed_format(key)
    return Fragment(shown, token, score + b"}", score + b',"top_logprobs":[', at_position, as_alternative)


def entry_format(shown: str, content: bytes) -> Format:
    """`Fragment.entry`."""
    return _score(encode(shown).replace(b"%", b"%%"), content) + b"}"


def keyed_format(key: str) -> Format:
    """`Fragment.as_alternative`."""
    return encode(key).replace(b"%", b"%%") + b":%b"


def _score(literal: Format, content: bytes) -> Format:
    return b'{"token":' + literal + b',"logprob":%b,"bytes":' + encode(list(content))


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


class KeptById(Generic[Made]):
    """The same of token ids, in a list: to find one of a whole vocabulary in a dict takes three times as many looks
    into memory that nobody has looked at lately."""

    def __init__(self, make: Callable[[int], Made], most: int = MOST_FRAGMENTS) -> None:
        self._make = make
        self._most = most
        self._count = 0
        self.kept: list[Made | None] = []
        """By id; None where there is nothing."""

    def __getitem__(self, token_id: int) -> Made:
        kept = self.kept
        return (kept[token_id] if 0 <= token_id < len(kept) else None) or self.keep(token_id)

    def keep(self, token_id: int) -> Made:
        """Make it, and keep it."""
        if not 0 <= token_id < LARGEST_ID:
            return self._make(token_id)
        kept = self.kept
        if token_id >= len(kept):
            kept += [None] * (token_id + 1 - len(kept))
        if self._count >= self._most:
            kept[:] = [None] * len(kept)
            self._count = 0
        made = kept[token_id] = self._make(token_id)
        self._count += 1
        return made


class Forms(NamedTuple):
    """A format for each token id: the one that is kept of it, or else what is made."""

    kept: list[Format | None]
    make: Callable[[int], Format] | AroundId


def forms(make: Callable[[int], Format]) -> Forms:
    """Such as are kept once they are made."""
    by_id = KeptById(make)
    return Forms(by_id.kept, by_id.keep)


class TokenDisplay:
    """How tokens are shown in logprobs: by text, or by id. There is one of each per server."""

    def __init__(self, piece_of: PieceOf, show_token_ids: bool, fill_rows: FillRows) -> None:
        self.piece_of = piece_of
        self.shows_token_ids = show_token_ids
        self.fill_rows = fill_rows
        self._fragments = KeptById(self._make)
        self._in_context = Kept(self._make_in_context)
        self.usual_entries = forms(self._entry)
        """Of tokens behind a whole character, which most are."""
        self.usual_alternatives = Forms([], KEYED_PLACEHOLDER) if show_token_ids else forms(self._keyed_format)

    def sampled(self, token_id: int, text: str, context: bytes) -> Fragment:
        """The token at a position, where it reads as `text` behind `context`."""
        kept = self._fragments.kept
        if 0 <= token_id < len(kept) and not context:
            fragment = kept[token_id]
            if fragment is not None and (fragment.shown == text or self.shows_token_ids):
                return fragment
        return self._sampled_otherwise(token_id, text, context)

    def _sampled_otherwise(self, token_id: int, text: str, context: bytes) -> Fragment:
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

    def entries(self, context: bytes, hides_special: bool) -> Forms:
        """`Fragment.entry` of each alternative."""
        if not context or self.shows_token_ids:
            return self.usual_entries
        return Forms([], lambda token_id: self.alternative(token_id, context, hides_special).entry)

    def as_alternatives(self, context: bytes, hides_special: bool) -> Forms:
        """`Fragment.as_alternative` of each."""
        if not context or self.shows_token_ids:
            return self.usual_alternatives
        return Forms([], lambda token_id: self.alternative(token_id, context, hides_special).as_alternative)

    def _entry(self, token_id: int) -> Format:
        return entry_format(self._shown(token_id), self.piece_of(token_id).content)

    def _keyed_format(self, token_id: int) -> Format:
        return keyed_format(self._key(token_id))

    def _shown(self, token_id: int, context: bytes = b"") -> str:
        if self.shows_token_ids:
            return placeholder(token_id)
        return text_after(context, self.piece_of(token_id))

    def _key(self, token_id: int, context: bytes = b"") -> str:
        """OpenAI's old notation for part of a character, and the placeholder for an id that the tokenizer lacks."""
        if shown := self._shown(token_id, context):
            return shown
        if not (content := self.piece_of(token_id).content):
            return placeholder(token_id)
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)

    def _make(self, token_id: int) -> Fragment:
        """As it is shown behind a whole character."""
        return self._make_in_context((b"", token_id))

    def _make_in_context(self, key: tuple[bytes, int]) -> Fragment:
        context, token_id = key
        content = self.piece_of(token_id).content
        return make_fragment(self._shown(token_id, context), self._key(token_id, context), content)
