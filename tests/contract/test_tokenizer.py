"""What every tokenizer promises, over one of each kind there is."""

import random
from collections.abc import Sequence
from functools import cache

import pytest
import tokenizers

from adapters.outbound.byte_tokenizer.tokenizer import ByteTokenizer
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from application.ports.tokenizer import Tokenizer
from tests.fakes import tokenizers as fakes

EXACT = ["byte", "byte_level_bpe", "llama_bpe", "gemma_bpe", "mistral_bpe", "unigram"]
"""These write every text, and read it back as it was."""
APPROXIMATE = ["unigram_without_bytes", "word_piece", "word_level", "end_of_word_bpe"]
"""These lose spaces, case, and characters they do not know."""

ADDED = {
    "llama_bpe": (["<s>"], []),
    "gemma_bpe": (["<s>"], ["</s>"]),
    "mistral_bpe": (["<s>"], []),
    "word_piece": (["[CLS]"], ["[SEP]"]),
}
"""Special tokens put before and after a text."""
DECODED = [kind for kind in EXACT + APPROXIMATE if kind not in ("byte", "unigram")]
"""These have a decoder that knows all of their entries."""
SPECIAL = {
    "byte": "<|eos|>",
    "byte_level_bpe": "<|im_end|>",
    "llama_bpe": "</s>",
    "gemma_bpe": "</s>",
    "mistral_bpe": "</s>",
    "unigram": "</s>",
    "unigram_without_bytes": "</s>",
    "word_piece": "[SEP]",
    "word_level": "[SEP]",
    "end_of_word_bpe": "[SEP]",
}

TEXTS = [
    "Hello, world!",
    "trailing spaces  ",
    "double  and   triple spaces\n\n\n\ttabs",
    "déjà vu, naïve café",
    "é and e\u0301 and \ufb01",
    "Привет, мир",
    "你好,世界 日本語",
    "🎉🐱🐶 👍🏽 👩‍👩‍👧‍👦",
    "اللغة العربية हिन्दी",
    "\ufffd is a character",
    "\u200b\ufeff\x00\x01\x7f",
    "don't . , ! x",
    "x",
]


@cache
def make(kind: str) -> HfTokenizer | ByteTokenizer:
    return ByteTokenizer() if kind == "byte" else HfTokenizer(raw(kind))


@cache
def raw(kind: str) -> tokenizers.Tokenizer:
    made: tokenizers.Tokenizer = getattr(fakes, kind)()
    return made


@pytest.fixture(params=EXACT + APPROXIMATE)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tokenizer(kind: str) -> HfTokenizer | ByteTokenizer:
    return make(kind)


def encode(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def joined(tokenizer: Tokenizer, token_ids: Sequence[int]) -> str:
    return b"".join(tokenizer.piece(token_id).content for token_id in token_ids).decode(errors="replace")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", EXACT, indirect=True)
def test_a_text_is_read_back_as_it_was(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(encode(tokenizer, text)) == text


@pytest.mark.parametrize("kind", EXACT, indirect=True)
def test_no_token_stands_for_more_than_the_longest_entry_has(kind: str, tokenizer: Tokenizer) -> None:
    for text in [*TEXTS, SPECIAL[kind] * 5, "x" * 500, " " * 500, "".join(TEXTS)]:
        assert len(text) <= len(encode(tokenizer, text)) * tokenizer.longest_entry
    entries = list(raw(kind).get_vocab()) if kind != "byte" else ["<|assistant|>"]
    assert tokenizer.longest_entry == max(map(len, entries))


@pytest.mark.parametrize("kind", ["byte", "byte_level_bpe", "llama_bpe", "gemma_bpe", "mistral_bpe"], indirect=True)
def test_a_space_at_the_start_is_read_back(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(encode(tokenizer, " leading")) == " leading"


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", EXACT, indirect=True)
def test_a_text_is_the_joined_bytes_of_its_tokens(tokenizer: Tokenizer, text: str) -> None:
    before = encode(tokenizer, "x")
    assert tokenizer.decode(before + encode(tokenizer, text)) == "x" + joined(tokenizer, encode(tokenizer, text))


@pytest.mark.parametrize("kind", ["word_piece", "word_level"], indirect=True)
def test_the_spaces_that_a_decoder_writes_belong_to_the_token_behind(tokenizer: Tokenizer) -> None:
    first, *others = encode(tokenizer, "the dog does not mind at")
    assert others
    assert tokenizer.decode([first, *others]) == tokenizer.decode([first]) + joined(tokenizer, others)


def test_the_spaces_that_end_words_belong_to_their_tokens() -> None:
    tokenizer = make("end_of_word_bpe")
    token_ids = encode(tokenizer, "the dog does not mind")
    assert joined(tokenizer, token_ids) == "the dog does not mind "
    assert tokenizer.decode(token_ids) == "the dog does not mind"


@pytest.mark.parametrize("kind", EXACT, indirect=True)
def test_parts_of_a_character_are_its_bytes(tokenizer: Tokenizer) -> None:
    pieces = [tokenizer.piece(token_id) for token_id in encode(tokenizer, "x🎉")]
    parts = [piece for piece in pieces if piece.text is None]
    assert b"".join(piece.content for piece in parts) == b"\xf0\x9f\x8e\x89"
    assert len(parts) == 4


@pytest.mark.parametrize("kind", EXACT, indirect=True)
def test_broken_characters_read_as_replacements(tokenizer: Tokenizer) -> None:
    x, *parts = encode(tokenizer, "x🎉")[-5:]
    whole = tokenizer.decode([x])
    broken = tokenizer.decode([x, *parts[:3], *parts, parts[3], *parts[:2]])
    assert broken == f"{whole}\ufffd🎉\ufffd\ufffd"


@pytest.mark.parametrize("kind", EXACT, indirect=True)
def test_any_token_ids_read_as_their_joined_bytes(tokenizer: HfTokenizer | ByteTokenizer) -> None:
    choose = random.Random(0)
    for length in range(1, 60):
        token_ids = [choose.randrange(tokenizer.vocab_size + 3) for _ in range(length)]
        text = tokenizer.decode(token_ids)
        assert joined(tokenizer, token_ids) in (text, f" {text}")


class TestTheStartOfAText:
    """The port's starting_piece, against the tokenizers library's own decoder."""

    @staticmethod
    def decode(kind: str, token_ids: Sequence[int]) -> str:
        decoded: str = raw(kind).decode(token_ids, skip_special_tokens=False)
        return decoded

    @pytest.mark.parametrize("kind", DECODED, indirect=True)
    def test_every_entry_reads_there_as_it_is_decoded_alone(self, tokenizer: HfTokenizer, kind: str) -> None:
        for token_id in range(tokenizer.vocab_size):
            starting = tokenizer.starting_piece(token_id)
            if starting.text is not None:
                assert starting.text == self.decode(kind, [token_id])

    @pytest.mark.parametrize("text", ["", " ", *TEXTS])
    @pytest.mark.parametrize("kind", ["byte_level_bpe", "llama_bpe", "gemma_bpe", "mistral_bpe"], indirect=True)
    def test_behind_it_follow_the_bytes_of_the_others(self, tokenizer: HfTokenizer, kind: str, text: str) -> None:
        token_ids = encode(tokenizer, text)
        content = b"".join(tokenizer.starting_piece(token_id).content for token_id in token_ids[:1])
        content += b"".join(tokenizer.piece(token_id).content for token_id in token_ids[1:])
        assert content.decode() == self.decode(kind, token_ids)

    @pytest.mark.parametrize("kind", ["llama_bpe", "unigram", "unigram_without_bytes"], indirect=True)
    def test_the_space_before_a_first_word_is_dropped(self, tokenizer: HfTokenizer) -> None:
        first = encode(tokenizer, "the dog")[0]
        assert tokenizer.piece(first).content.startswith(b" t")
        assert b" " + tokenizer.starting_piece(first).content == tokenizer.piece(first).content

    @pytest.mark.parametrize("kind", ["byte", "byte_level_bpe", "gemma_bpe", "mistral_bpe"], indirect=True)
    def test_others_have_none_to_drop(self, tokenizer: HfTokenizer | ByteTokenizer) -> None:
        for token_id in range(tokenizer.vocab_size):
            assert tokenizer.starting_piece(token_id) == tokenizer.piece(token_id)

    def test_it_is_the_same_for_parts_of_characters_special_and_lacking_entries(
        self, tokenizer: HfTokenizer | ByteTokenizer
    ) -> None:
        for token_id in (-1, *range(tokenizer.vocab_size + 2)):
            piece = tokenizer.piece(token_id)
            assert tokenizer.starting_piece(token_id).is_special is piece.is_special
            if piece.text is None or piece.is_special or not piece.content:
                assert tokenizer.starting_piece(token_id) == piece


def test_any_token_ids_can_be_read(tokenizer: HfTokenizer | ByteTokenizer) -> None:
    choose = random.Random(0)
    for length in range(60):
        tokenizer.decode([choose.randrange(-2, tokenizer.vocab_size + 3) for _ in range(length)])


def test_an_id_has_one_piece(tokenizer: HfTokenizer | ByteTokenizer) -> None:
    for token_id in range(tokenizer.vocab_size):
        assert tokenizer.piece(token_id) is tokenizer.piece(token_id)
        assert tokenizer.piece(token_id).content


def test_entries_are_written_as_the_vocabulary_writes_them(kind: str, tokenizer: HfTokenizer | ByteTokenizer) -> None:
    text = "Hello dog" if kind in APPROXIMATE else "Hello, é🎉 dog"
    token_ids = encode(tokenizer, text)
    entries = [tokenizer.entry(token_id) for token_id in token_ids]
    if kind == "byte":
        assert entries[-8:] == ["<0xF0>", "<0x9F>", "<0x8E>", "<0x89>", " ", "d", "o", "g"]
    else:
        assert entries == raw(kind).encode(text, add_special_tokens=False).tokens
    assert tokenizer.entry(-1) == tokenizer.entry(tokenizer.vocab_size) == tokenizer.entry(2**63) == ""


@pytest.mark.parametrize("lacking", [0, 1, 2**31, 2**32, 2**64])
def test_an_id_that_the_vocabulary_lacks_reads_as_nothing(tokenizer: HfTokenizer | ByteTokenizer, lacking: int) -> None:
    token_ids = encode(tokenizer, "the dog")
    for token_id in (tokenizer.vocab_size + lacking, -1 - lacking):
        piece = tokenizer.piece(token_id)
        assert (piece.content, piece.text, piece.is_special) == (b"", "", False)
        assert tokenizer.piece(token_id) is piece
        assert tokenizer.decode([token_id, *token_ids, token_id]) == tokenizer.decode(token_ids)


def test_special_tokens_are_recognised_and_shown(tokenizer: HfTokenizer | ByteTokenizer, kind: str) -> None:
    content = SPECIAL[kind]
    token_ids = encode(tokenizer, f"the dog{content}fox")
    special = [token_id for token_id in token_ids if tokenizer.piece(token_id).is_special]
    assert [tokenizer.piece(token_id).text for token_id in special] == [content]
    assert content in tokenizer.decode(token_ids)


def test_what_is_added_to_a_text_is_special(tokenizer: HfTokenizer | ByteTokenizer, kind: str) -> None:
    before, after = ADDED.get(kind, ([], []))
    plain = encode(tokenizer, "the dog")
    token_ids = tokenizer.encode("the dog", add_special_tokens=True)
    pieces = [tokenizer.piece(token_id) for token_id in token_ids]
    assert token_ids[len(before) : len(token_ids) - len(after)] == plain
    assert [piece.text for piece in pieces if piece.is_special] == before + after


@pytest.mark.parametrize("text", ["", *TEXTS, "the dog ", "a<|eos|><|im_end|></s>[SEP] b"])
@pytest.mark.parametrize("add_special_tokens", [True, False])
def test_offsets_go_along_with_the_tokens(
    tokenizer: HfTokenizer | ByteTokenizer, text: str, add_special_tokens: bool
) -> None:
    token_ids = tokenizer.encode(text, add_special_tokens=add_special_tokens)
    offsets = tokenizer.encode_offsets(text, add_special_tokens=add_special_tokens)
    assert len(offsets) == len(token_ids)
    assert offsets == sorted(offsets)
    assert all(0 <= offset <= len(text) for offset in offsets)


@pytest.mark.parametrize("kind", ["byte", "byte_level_bpe", "llama_bpe", "gemma_bpe", "mistral_bpe"], indirect=True)
@pytest.mark.parametrize("text", TEXTS)
def test_a_token_starts_at_its_offset(tokenizer: Tokenizer, text: str) -> None:
    token_ids = encode(tokenizer, text)
    offsets = tokenizer.encode_offsets(text, add_special_tokens=False)
    for token_id, offset in list(zip(token_ids, offsets, strict=True))[1:]:
        piece = tokenizer.piece(token_id)
        if piece.text is None:
            assert piece.content in text[offset : offset + 4].encode()
        else:
            assert text.startswith(piece.text, offset)


@pytest.mark.parametrize("kind", ["gemma_bpe", "word_piece"], indirect=True)
def test_what_is_added_stands_at_the_start_and_the_end(tokenizer: Tokenizer) -> None:
    offsets = tokenizer.encode_offsets("the dog", add_special_tokens=True)
    assert offsets[0] == offsets[1] == 0
    assert offsets[-1] == len("the dog")


def test_half_a_surrogate_pair_is_no_failure(tokenizer: Tokenizer) -> None:
    assert encode(tokenizer, "the \ud83c dog") == encode(tokenizer, "the \ufffd dog")
    halved, whole = ("the \udf89 dog", "the \ufffd dog")
    assert tokenizer.encode_offsets(halved, add_special_tokens=False) == tokenizer.encode_offsets(
        whole, add_special_tokens=False
    )
