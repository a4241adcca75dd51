"""JSON of a token, made once per id: the same bytes serve every row in which the token stands."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from adapters.inbound.http.openai.encoding import encode
from adapters.inbound.http.openai.filling import AroundId, FillRows, Format
from domain.detokenizer import PieceOf
from domain.generation import ScoredTokens
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


class ChatFragment(Struct, frozen=True, gc=False):
    """A token as chat shows it."""

    opening: Format
    """An item of `content`, up to its alternatives."""
    entry: Format
    """The same among its alternatives."""


class CompletionFragment(Struct, frozen=True, gc=False):
    """A token as completions show it."""

    token: bytes
    """A JSON string: an item of `tokens`."""
    score: Format
    """Its own, among those at its position."""


def chat_fragment(shown: str, content: bytes) -> ChatFragment:
    """`shown` is the token's text or placeholder; `content` its own bytes, the same in both displays."""
    entry = entry_format(shown, content)
    return ChatFragment(entry.removesuffix(b"}") + b',"top_logprobs":[', entry)


def lone_format(shown: str, content: bytes) -> Format:
    """All that chat shows of one token without alternatives."""
    return b'{"content":[' + chat_fragment(shown, content).opening + b"]}]}"


def completion_fragment(shown: str, _content: bytes) -> CompletionFragment:
    return CompletionFragment(encode(shown), keyed_format(shown))


def entry_format(shown: str, content: bytes) -> Format:
    """A token and its score in chat."""
    return b'{"token":' + encode(shown).replace(b"%", b"%%") + b',"logprob":%b,"bytes":' + encode(list(content)) + b"}"


def keyed_format(key: str) -> Format:
    """A score in completions."""
    return encode(key).replace(b"%", b"%%") + b":%b"


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


class AtPositions(Generic[Made]):
    """What is made of tokens that stand at positions: of what they show there, and of their bytes."""

    def __init__(self, piece_of: PieceOf, show_token_ids: bool, make: Callable[[str, bytes], Made]) -> None:
        self._piece_of = piece_of
        self._show_token_ids = show_token_ids
        self._make = make
        self.lone = KeptById(lambda token_id: self._make_read((token_id, text_after(b"", piece_of(token_id)))))
        """Of one that reads as it does by itself, as most do."""
        self._read = Kept(self._make_read)

    def of(self, part: ScoredTokens) -> list[Made]:
        """Each, as it reads in its place."""
        if self._show_token_ids:
            return list(map(self.lone.__getitem__, part.token_ids))
        return list(map(self._read.__getitem__, zip(part.token_ids, part.texts, strict=True)))

    def _make_read(self, read: tuple[int, str]) -> Made:
        token_id, text = read
        return self._make(placeholder(token_id) if self._show_token_ids else text, self._piece_of(token_id).content)


class Alternatives:
    """Formats of tokens that might have stood at a position."""

    def __init__(self, piece_of: PieceOf, make: Callable[[int, bytes], Format]) -> None:
        """`make` is given an id, and the bytes of a character begun before it."""
        self._piece_of = piece_of
        self.usual = forms(lambda token_id: make(token_id, b""))
        """Behind a whole character, as most are."""
        self._in_context = Kept[tuple[int, bytes], Format](lambda read: make(*read))

    def behind(self, part: ScoredTokens) -> Forms:
        """Each is read behind the same bytes as the token that stands there; a hidden special one, by itself."""
        context = part.contexts[0]
        if not context:
            return self.usual

        def form(token_id: int) -> Format:
            hidden = part.hides_special and self._piece_of(token_id).is_special
            return self._in_context[token_id, b"" if hidden else context]

        return Forms([], form)


class TokenDisplay:
    """How tokens are shown in logprobs: by text, or by id. There is one of each per server."""

    def __init__(self, piece_of: PieceOf, show_token_ids: bool, fill_rows: FillRows) -> None:
        self._piece_of = piece_of
        self._show_token_ids = show_token_ids
        self.fill_rows = fill_rows
        self.in_chat = AtPositions(piece_of, show_token_ids, chat_fragment)
        self.alone_in_chat = AtPositions(piece_of, show_token_ids, lone_format)
        self.in_completions = AtPositions(piece_of, show_token_ids, completion_fragment)
        self._entries = Alternatives(piece_of, self._entry)
        self._keyed = Alternatives(piece_of, self._keyed_format)
        self.usual_entries = self._entries.usual
        """Of alternatives in chat."""
        self.usual_keyed = Forms([], KEYED_PLACEHOLDER) if show_token_ids else self._keyed.usual
        """In completions, where no two may have the same key."""

    def entries(self, part: ScoredTokens) -> Forms:
        """Of alternatives to its tokens, in chat."""
        return self.usual_entries if self._show_token_ids else self._entries.behind(part)

    def keyed(self, part: ScoredTokens) -> Forms:
        """Likewise in completions."""
        return self.usual_keyed if self._show_token_ids else self._keyed.behind(part)

    def _entry(self, token_id: int, context: bytes) -> Format:
        piece = self._piece_of(token_id)
        return entry_format(
            placeholder(token_id) if self._show_token_ids else text_after(context, piece), piece.content
        )

    def _keyed_format(self, token_id: int, context: bytes) -> Format:
        """OpenAI's old notation for part of a character, and the placeholder for an id that the tokenizer lacks."""
        piece = self._piece_of(token_id)
        if shown := text_after(context, piece):
            return keyed_format(shown)
        in_bytes = "".join(f"\\x{byte:02x}" for byte in piece.content)
        return keyed_format(f"bytes:{in_bytes}" if in_bytes else placeholder(token_id))
