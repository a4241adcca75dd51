"""Tokens of Hugging Face vocabularies, against what the tokenizers library itself makes of them."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.decoders import DecodeStream

from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.hf_tokenizer.vocabulary import NotationNotKnown
from domain.token_text import Utf8Reader
from tests.fakes import tokenizers

KINDS = [
    "byte_level_bpe",
    "llama_bpe",
    "gemma_bpe",
    "mistral_bpe",
    "unigram",
    "word_piece",
    "word_level",
    "end_of_word_bpe",
]
TEXT = "Hello, world! Un café, 你好 🎉👍🏽 two  spaces\n"


@pytest.fixture(params=KINDS)
def library(request: pytest.FixtureRequest) -> Tokenizer:
    """The tokenizers library's own."""
    made: Tokenizer = getattr(tokenizers, request.param)()
    return made


def test_special_tokens_are_those_that_the_library_hides(library: Tokenizer) -> None:
    library.add_tokens(["<shown>"])
    tokenizer = HfTokenizer(library)
    for token_id in range(tokenizer.vocab_size):
        hidden = library.decode([token_id, token_id], skip_special_tokens=True) == ""
        is_nothing = library.decode([token_id, token_id], skip_special_tokens=False) == ""
        assert tokenizer.piece(token_id).is_special == (hidden and not is_nothing)


@pytest.mark.parametrize("hides_special", [True, False])
@pytest.mark.parametrize("library", ["byte_level_bpe", "llama_bpe", "gemma_bpe"], indirect=True)
def test_tokens_stream_as_the_library_streams_them(library: Tokenizer, hides_special: bool) -> None:
    tokenizer = HfTokenizer(library)
    prompt = tokenizer.encode("Hello", add_special_tokens=True)
    special = next(token_id for token_id in range(8) if tokenizer.piece(token_id).is_special)
    output = [
        *tokenizer.encode(TEXT, add_special_tokens=False),
        special,
        *tokenizer.encode("x", add_special_tokens=False),
    ]
    stream = DecodeStream(prompt, skip_special_tokens=hides_special)
    expected = "".join(filter(None, (stream.step(library, token_id) for token_id in output)))
    shown = [piece for piece in map(tokenizer.piece, output) if not (hides_special and piece.is_special)]
    assert Utf8Reader().feed(shown) == expected


@pytest.mark.parametrize("library", ["byte_level_bpe", "llama_bpe", "gemma_bpe", "word_piece"], indirect=True)
def test_a_text_decodes_as_by_the_library(library: Tokenizer) -> None:
    tokenizer = HfTokenizer(library)
    token_ids = tokenizer.encode(TEXT, add_special_tokens=True)
    assert tokenizer.decode(token_ids) == library.decode(token_ids, skip_special_tokens=False)


def test_broken_bytes_of_a_byte_level_vocabulary_decode_as_by_the_library() -> None:
    library = tokenizers.byte_level_bpe()
    tokenizer = HfTokenizer(library)
    choose = random.Random(0)
    for length in range(1, 100):
        token_ids = [choose.randrange(tokenizer.vocab_size) for _ in range(length)]
        assert tokenizer.decode(token_ids) == library.decode(token_ids, skip_special_tokens=False)


def test_byte_entries_that_break_do_not_change_what_stands_before() -> None:
    tokenizer = HfTokenizer(tokenizers.llama_bpe())
    whole, part = (tokenizer.encode(text, add_special_tokens=False) for text in ("ü🎉", "🎉"))
    cut = part[-4:][:2]
    # the library reads all bytes in a row as broken: the whole character too
    assert tokenizer.decode(whole + cut) == "ü🎉\ufffd"


@pytest.mark.parametrize("kind", ["byte_level_bpe", "llama_bpe"])
@pytest.mark.parametrize("special", [True, False])
def test_an_added_token_is_its_content(kind: str, special: bool) -> None:
    library: Tokenizer = getattr(tokenizers, kind)()
    library.add_tokens([AddedToken("caféé▁Ġ", special=special, normalized=False)])
    tokenizer = HfTokenizer(library)
    (token_id,) = tokenizer.encode("caféé▁Ġ", add_special_tokens=False)[-1:]
    piece = tokenizer.piece(token_id)
    assert (piece.content, piece.text, piece.is_special) == ("caféé▁Ġ".encode(), "caféé▁Ġ", special)
    assert tokenizer.decode([token_id, token_id]) == "caféé▁Ġcaféé▁Ġ"


def test_an_added_token_that_looks_like_a_byte_is_its_content() -> None:
    library = tokenizers.byte_level_bpe()
    library.add_tokens(["é"])
    tokenizer = HfTokenizer(library)
    (token_id,) = tokenizer.encode("é", add_special_tokens=False)
    assert library.decode([token_id]) == "\ufffd"
    assert tokenizer.piece(token_id).text == tokenizer.decode([token_id]) == "é"


def test_runs_of_spaces_that_are_added_tokens_too_are_spaces() -> None:
    library = tokenizers.gemma_bpe()
    token_id = library.token_to_id("▁▁▁")
    assert token_id in library.get_added_tokens_decoder()
    assert HfTokenizer(library).piece(token_id).text == "   "


@pytest.mark.parametrize(
    ("token", "text"),
    [("##ing", "ing"), ("dog", " dog"), (".", "."), (",", ","), ("[SEP]", "[SEP]")],
)
def test_entries_of_word_pieces_read_as_in_the_middle_of_a_text(token: str, text: str) -> None:
    library = Tokenizer(models.WordPiece({"[UNK]": 0, token: 1}, unk_token="[UNK]"))
    library.decoder = decoders.WordPiece()
    library.add_special_tokens([name for name in ("[UNK]", token) if name.startswith("[")])
    assert HfTokenizer(library).piece(1).text == text


@pytest.mark.parametrize("prepend_scheme", ["always", "never", "first"])
def test_a_space_of_metaspace_is_kept_but_at_the_start(prepend_scheme: str) -> None:
    library = Tokenizer(models.WordLevel({"▁dog": 0}, unk_token="▁dog"))
    library.decoder = decoders.Metaspace(prepend_scheme=prepend_scheme)
    tokenizer = HfTokenizer(library)
    assert tokenizer.piece(0).text == " dog"
    assert tokenizer.decode([0, 0]) == library.decode([0, 0])


@pytest.mark.parametrize(
    ("pre_tokenizer", "entry", "text"),
    [
        (pre_tokenizers.ByteLevel(), "Ġdog", " dog"),
        (pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.ByteLevel()]), "Ġdog", " dog"),
        (pre_tokenizers.Metaspace(), "▁dog", " dog"),
        (pre_tokenizers.Whitespace(), "dog", " dog"),
        (None, "dog", " dog"),
    ],
)
def test_without_a_decoder_the_way_texts_are_split_tells_the_notation(
    pre_tokenizer: pre_tokenizers.PreTokenizer | None, entry: str, text: str
) -> None:
    library = Tokenizer(models.WordLevel({entry: 0}, unk_token=entry))
    if pre_tokenizer is not None:
        library.pre_tokenizer = pre_tokenizer
    assert HfTokenizer(library).piece(0).text == text


def test_a_decoder_of_unknown_notation_is_refused() -> None:
    library = tokenizers.word_level()
    library.decoder = decoders.CTC()
    with pytest.raises(NotationNotKnown, match="CTC"):
        HfTokenizer(library)


def test_truncation_and_padding_do_not_touch_a_prompt() -> None:
    library = tokenizers.byte_level_bpe()
    plain = HfTokenizer(library).encode(TEXT, add_special_tokens=True)
    library.enable_truncation(3)
    library.enable_padding(length=500)
    assert HfTokenizer(library).encode(TEXT, add_special_tokens=True) == plain


def test_the_vocabulary_counts_gaps_and_added_tokens() -> None:
    library = Tokenizer(models.WordLevel({"a": 0, "b": 7}, unk_token="a"))
    assert HfTokenizer(library).vocab_size == 8
    assert HfTokenizer(library).piece(3).content == b""
    library.add_tokens(["c", "d"])
    tokenizer = HfTokenizer(library)
    assert tokenizer.piece(tokenizer.vocab_size - 1).content


@pytest.mark.parametrize(
    ("kind", "encode", "times"),
    [
        ("byte_level_bpe", "encode", 200_000),
        ("word_level", "encode", 40_000),
        ("byte_level_bpe", "encode_offsets", 5_000),
    ],
)
def test_other_threads_run_while_a_long_text_is_encoded(kind: str, encode: str, times: int) -> None:
    tokenizer = HfTokenizer(getattr(tokenizers, kind)())
    turns = 0
    with ThreadPoolExecutor(1) as other:
        encoding = other.submit(getattr(tokenizer, encode), TEXT * times, add_special_tokens=False)
        while not encoding.done():
            time.sleep(0.001)
            turns += 1
    assert turns > 20
