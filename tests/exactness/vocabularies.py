"""Vocabularies of every family: the tokenizer that is tested, and what each entry stands for, read here without it."""

import json
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken
from tokenizers import Tokenizer as Library

from adapters.outbound.byte_tokenizer.tokenizer import BYTES, SPECIAL_TOKENS, ByteTokenizer
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from application.ports.tokenizer import Tokenizer
from tests.fakes import tokenizers as fakes

PADDING = 8
"""Ids behind the last entry that a model has all the same: its vocabulary is padded."""


class Entry(NamedTuple):
    content: bytes
    is_special: bool = False


LACKING = Entry(b"")


class Vocabulary:
    """`entries` by id; `first` are those that read otherwise at the very start of a text."""

    def __init__(
        self,
        name: str,
        tokenizer: Tokenizer,
        entries: dict[int, Entry],
        first: Callable[[int], bytes] | None = None,
        locate: Callable[[str, bool], tuple[list[int], list[int]]] | None = None,
    ) -> None:
        self.name = name
        self.tokenizer = tokenizer
        self._entries = entries
        self._first = first
        self._locate = locate
        self.ids = sorted(entries)
        self.size = self.ids[-1] + 1 + PADDING
        self.lacking = [token_id for token_id in range(self.size) if token_id not in entries]
        self.specials = [token_id for token_id in self.ids if entries[token_id].is_special]
        self.parts = [token_id for token_id in self.ids if not _is_text(entries[token_id].content)]
        """Entries that are, or hold, part of a character."""
        self.long_ids = {token_id for token_id in self.ids if len(entries[token_id].content) > 2}
        self._bytes = {entry.content[0]: token_id for token_id, entry in entries.items() if len(entry.content) == 1}

    def __getitem__(self, token_id: int) -> Entry:
        return self._entries.get(token_id, LACKING)

    def at_start(self, token_id: int) -> bytes:
        content = self[token_id].content
        return content if self._first is None or not _is_text(content) else self._first(token_id)

    def spell(self, text: str) -> list[int]:
        """A token per byte, less the bytes that have none."""
        return [self._bytes[byte] for byte in text.encode() if byte in self._bytes]

    def locate(self, text: str, adds_special: bool) -> tuple[list[int], list[int]]:
        """Token ids of a text, and where each starts in it by the tokenizer's own account."""
        if self._locate is not None:
            return self._locate(text, adds_special)
        starts = [index for index, character in enumerate(text) for _ in character.encode()]
        return list(text.encode()), starts


def byte() -> Vocabulary:
    entries = {value: Entry(bytes([value])) for value in range(BYTES)}
    entries |= {BYTES + index: Entry(text.encode(), True) for index, text in enumerate(SPECIAL_TOKENS)}
    return Vocabulary("byte", ByteTokenizer(), entries)


HARD = [
    b"a\xf0",
    b" \xf0\x9f",
    b"\x9f\x8e\x89b",
    b"\x8e\x89",
    b"\xe4\xb8",
    b"\xed\xa0",
    b"\xef\xbf\xbd",
    b"\xc3\xa9\xc3",
]
"""Entries that are more or less than a character, as merges of byte-level BPE make them."""

ADDED = [
    AddedToken("é", normalized=False),
    AddedToken("<|🎉|>", special=True, normalized=False),
    AddedToken("<tool>", normalized=False),
]


def byte_level() -> Vocabulary:
    state = json.loads(fakes.byte_level_bpe().to_str())
    alphabet = {byte: letter for letter, byte in byte_letters().items()}
    entries, ids = state["model"]["vocab"], count(len(state["model"]["vocab"]))
    for content in HARD:
        entries.setdefault("".join(alphabet[byte] for byte in content), next(ids))
    library = Library.from_str(json.dumps(state))
    library.add_tokens(ADDED)
    return _of("byte-level BPE", library, _read_byte_level)


def llama() -> Vocabulary:
    library = fakes.llama_bpe()
    library.add_tokens(ADDED)
    return _of("byte-fallback BPE", library, _read_byte_fallback)


def gemma() -> Vocabulary:
    return _of("byte-fallback BPE, nothing prepended", fakes.gemma_bpe(), _read_byte_fallback)


def unigram() -> Vocabulary:
    return _of("byte-fallback Unigram", fakes.unigram(), _read_byte_fallback)


def word_piece() -> Vocabulary:
    return _of("WordPiece", fakes.word_piece(), _read_word_piece)


def word_level() -> Vocabulary:
    return _of("WordLevel", fakes.word_level(), lambda entry: f" {entry}".encode())


def of_model(folder: Path) -> Vocabulary:
    """A model's own, which must be byte-level BPE."""
    return _of(folder.name, Library.from_file(str(folder / "tokenizer.json")), _read_byte_level)


MADE = (byte, byte_level, llama, gemma, unigram, word_piece, word_level)


@cache
def all_made() -> tuple[Vocabulary, ...]:
    return tuple(make() for make in MADE)


def _of(name: str, library: Library, read: Callable[[str], bytes]) -> Vocabulary:
    state: dict[str, Any] = json.loads(library.to_str())
    vocab = state["model"]["vocab"]
    written = {token: token_id for token_id, (token, _) in enumerate(vocab)} if isinstance(vocab, list) else vocab
    entries = {token_id: Entry(read(token)) for token, token_id in written.items()}
    as_written = set()
    for added in state["added_tokens"]:
        is_symbol = "▁" in added["content"] and not added["special"]  # SentencePiece's own, in its own alphabet
        if not is_symbol:
            as_written.add(added["id"])
            entries[added["id"]] = Entry(added["content"].encode(), added["special"])

    def first(token_id: int) -> bytes:
        entry = library.id_to_token(token_id)
        if token_id in as_written or entry is None:
            return entries.get(token_id, LACKING).content
        text: str = library.decode([token_id], skip_special_tokens=False)
        is_unread = text == entry and text.startswith("<0x")  # by a decoder that knows of no bytes
        return entries[token_id].content if is_unread else text.encode()

    def locate(text: str, adds_special: bool) -> tuple[list[int], list[int]]:
        encoding = library.encode(text, add_special_tokens=adds_special)
        starts = [start for start, _ in encoding.offsets]
        for place, is_added in enumerate(encoding.special_tokens_mask):
            if is_added:
                starts[place] = len(text) if place else 0
        return encoding.ids, starts

    return Vocabulary(name, HfTokenizer(library), entries, first, locate)


def byte_letters() -> dict[str, int]:
    """The letter in which byte-level BPE writes each byte: itself if it shows in print, else one from U+0100 on."""
    printable = [byte for byte in range(256) if chr(byte).isprintable() and chr(byte) != " "]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


LETTERS = byte_letters()


def _read_byte_level(entry: str) -> bytes:
    if all(letter in LETTERS for letter in entry):
        return bytes(LETTERS[letter] for letter in entry)
    return entry.encode()


def _read_byte_fallback(entry: str) -> bytes:
    if entry.startswith("<0x") and len(entry) == 6:
        return bytes([int(entry[3:5], 16)])
    return entry.replace("▁", " ").encode()


def _read_word_piece(entry: str) -> bytes:
    if entry.startswith("##"):
        return entry[2:].encode()
    return (entry if entry[0] in ".,!?" else f" {entry}").encode()


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
