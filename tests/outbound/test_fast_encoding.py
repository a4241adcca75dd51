"""Fast encoding gives the ids of the tokenizers library, and is left alone where it is not known to."""

import json
import sys
import threading
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from adapters.outbound.hf_tokenizer.fast_encoding import HARD_TEXTS, PATTERNS, FastEncodingToCome, fast_encoding
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from tests.fakes import tokenizers as fakes

Change = Callable[[Tokenizer], None]


def split_by(*patterns: str) -> Tokenizer:
    """Byte-level BPE over what these leave of a text."""
    tokenizer = fakes.byte_level_bpe()
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    bytes_of_each = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*splits, bytes_of_each])
    return tokenizer


def changed(change: Change, make: Callable[[], Tokenizer] = fakes.byte_level_bpe) -> Tokenizer:
    tokenizer = make()
    change(tokenizer)
    return tokenizer


def rewritten(**changes: Any) -> Tokenizer:
    """Byte-level BPE with other settings of its model."""
    state = json.loads(fakes.byte_level_bpe().to_str())
    state["model"] |= changes
    return Tokenizer.from_str(json.dumps(state))


def without_some_bytes(*more: str) -> Tokenizer:
    """As SmolLM2 has it: some bytes have no entry. `more` are entries that no merge makes."""
    state = json.loads(fakes.byte_level_bpe().to_str())
    lacking = {"!", "ó"}
    entries = [*(entry for entry in state["model"]["vocab"] if not lacking & set(entry)), *more]
    merges = [pair for pair in state["model"]["merges"] if not lacking & set("".join(pair))]
    state["model"] |= {"vocab": {entry: index for index, entry in enumerate(entries)}, "merges": merges}
    return Tokenizer.from_str(json.dumps(state))


def add(**flags: bool) -> Change:
    return lambda tokenizer: tokenizer.add_tokens([AddedToken("<tool>", **{"normalized": False} | flags)])  # type: ignore[func-returns-value]


def normalize(normalizer: Any) -> Change:
    return lambda tokenizer: setattr(tokenizer, "normalizer", normalizer)


def split(pre_tokenizer: Any) -> Change:
    return lambda tokenizer: setattr(tokenizer, "pre_tokenizer", pre_tokenizer)


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)
TEMPLATE = processors.TemplateProcessing("<|im_start|> $A", special_tokens=[("<|im_start|>", 1)])

KNOWN: dict[str, Tokenizer] = {
    "byte-level": fakes.byte_level_bpe(),
    "SentencePiece": fakes.mistral_bpe(),
    "some bytes lacking": without_some_bytes(),
    "DeepSeek": split_by(*(pattern for pattern in PATTERNS if not pattern.startswith(("(?i", r"[^\r\n\p{L}\p{N}]")))),
    "digits": changed(split(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), BYTES]))),
    "NFC": changed(normalize(normalizers.NFC())),
    "prepended": changed(normalize(normalizers.Sequence([normalizers.Prepend("▁")])), fakes.mistral_bpe),
    "a template": changed(lambda tokenizer: setattr(tokenizer, "post_processor", TEMPLATE)),
    "added": changed(add()),
    "added, normalized": changed(add(normalized=True)),
    "entries first": rewritten(ignore_merges=True),
} | {f"split by {pattern[:40]}… {len(pattern)}": split_by(pattern) for pattern in PATTERNS}

UNKNOWN: dict[str, Tokenizer] = {
    "Unigram": fakes.unigram(),
    "WordPiece": fakes.word_piece(),
    "WordLevel": fakes.word_level(),
    "ends of words": fakes.end_of_word_bpe(),
    "byte entries in letters without entries": fakes.llama_bpe(),
    "an entry in a letter without an entry": without_some_bytes("a!"),
    "parts of words": Tokenizer(
        models.BPE({"a": 0, "b": 1, "##b": 2, "#": 3, "ab": 4}, [("a", "##b")], continuing_subword_prefix="##")
    ),
    "chance": rewritten(dropout=0.1),
    "another expression": split_by(r"\w+|\W+"),
    "what is between": changed(
        split(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "removed"), BYTES]))
    ),
    "inverted": changed(
        split(pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated", invert=True), BYTES]))
    ),
    "lower case": changed(normalize(normalizers.Lowercase())),
    "added, with what is left of it": changed(add(lstrip=True)),
    "added, with what is right of it": changed(add(rstrip=True)),
    "added, a word of its own": changed(add(single_word=True)),
    "added, normalized to something": changed(
        lambda it: (add(normalized=True)(it), normalize(normalizers.NFC())(it))[0]
    ),
    "added, normalized, meeting others": changed(
        lambda tokenizer: tokenizer.add_tokens(["ol><"]) and add()(tokenizer)  # type: ignore[func-returns-value]
    ),
}

texts = st.text() | st.lists(
    st.sampled_from(
        [
            *"aA1é \n\t\r'\u00a0\u0301",
            "'s",
            "'LL",
            "123",
            "the ",
            "  ",
            "<|im_end|>",
            "<tool>",
            "</s>",
            "<0x0A>",
            "你好",
            "🎉",
        ]
    )
).map("".join)


@pytest.mark.parametrize("kind", KNOWN)
def test_it_gives_the_ids_of_the_library(kind: str) -> None:
    library = KNOWN[kind]
    encode = fast_encoding(library)
    assert encode is not None
    given_some = 0

    @settings(deadline=None)
    @given(texts, st.booleans())
    def check(text: str, add_special_tokens: bool) -> None:
        nonlocal given_some
        ids = encode(text, add_special_tokens)
        given_some += ids is not None
        assert ids in (None, library.encode(text, add_special_tokens=add_special_tokens).ids)

    check()
    assert given_some > 20


@pytest.mark.parametrize("kind", UNKNOWN)
def test_it_is_left_alone_where_it_is_not_known(kind: str) -> None:
    assert fast_encoding(UNKNOWN[kind]) is None


@pytest.mark.parametrize("text", ["half \ud83c a pair", "what it lacks! ó"])
def test_what_only_the_library_can_tell_is_asked_of_it(text: str) -> None:
    library = without_some_bytes()
    assert fast_encoding(library)(text, False) is None  # type: ignore[misc]
    expected = library.encode(text.replace("\ud83c", "\ufffd")).ids
    assert HfTokenizer(library).encode(text, add_special_tokens=False) == expected


def test_what_is_made_in_a_thread_is_what_texts_are_encoded_by_and_the_thread_is_over() -> None:
    library, threads = KNOWN[next(iter(KNOWN))], threading.enumerate()
    to_come = FastEncodingToCome(library)
    made = to_come.result()
    assert made is not None
    assert made("Hello", False) == library.encode("Hello", add_special_tokens=False).ids
    assert set(threading.enumerate()) <= set(threads)


def differing_at(text: str | None) -> ModuleType:
    """A fastokens that takes every tokenizer, and gives other ids for that text."""

    def from_json_str(state: str) -> SimpleNamespace:
        library = Tokenizer.from_str(state)

        def encode(asked: str, add_special_tokens: bool) -> SimpleNamespace:
            ids = library.encode(asked, add_special_tokens=add_special_tokens).ids
            return SimpleNamespace(ids=[*ids, 0] if asked == text else ids)

        return SimpleNamespace(encode=encode)

    module = ModuleType("fastokens")
    module.__dict__["Tokenizer"] = SimpleNamespace(from_json_str=from_json_str)
    return module


@pytest.mark.parametrize("text", [None, *HARD_TEXTS])
def test_one_that_differs_is_not_used(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.setitem(sys.modules, "fastokens", differing_at(text))
    assert (fast_encoding(fakes.byte_level_bpe()) is None) == (text is not None)


def test_without_it_texts_are_encoded_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastokens", None)
    library = fakes.byte_level_bpe()
    assert fast_encoding(library) is None
    assert HfTokenizer(library).encode("Hello", add_special_tokens=False) == library.encode("Hello").ids
