"""The vocabulary of a GGUF file keeps the promises of the tokenizer port."""

import pytest

from adapters.outbound.llamacpp_engine.model import GgufModel
from adapters.outbound.llamacpp_engine.tokenizer import GgufTokenizer

TEXTS = [
    "",
    "Hello, world!",
    " leading and trailing spaces  ",
    "double  and   triple\n\n\n\ttabs\r\n",
    "déjà vu, naïve café",
    "é and e\u0301 and \ufb01 and a\u0323\u0307",
    "Привет, мир",
    "你好,世界 日本語 한국어",
    "🎉🐱🐶 👍🏽 👩‍👩‍👧‍👦 🇩🇪",
    "اللغة العربية हिन्दी",
    "\ufffd is a character",
    "\u200b\ufeff\x00\x01\x7f\u2028",
    "don't it's I'LL 'tis",
    "12345 1,234.5 ½ ²",
    "<|im_start|>user\nhi<|im_end|>",
    "a<|im_end|>b <|endoftext|>",
    "<|im_start|",
    "x" * 300,
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("add_special_tokens", [False, True])
def test_ids_are_those_of_llama_cpp(
    model: GgufModel, tokenizer: GgufTokenizer, text: str, add_special_tokens: bool
) -> None:
    assert tokenizer.encode(text, add_special_tokens=add_special_tokens) == model.vocab.tokenize(
        text, add_special_tokens, True
    )


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_read_back_as_it_was(tokenizer: GgufTokenizer, text: str) -> None:
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(token_ids) == text
    assert b"".join(tokenizer.piece(token_id).content for token_id in token_ids) == text.encode()


@pytest.mark.parametrize("text", TEXTS)
def test_a_token_starts_at_its_offset(tokenizer: GgufTokenizer, text: str) -> None:
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    offsets = tokenizer.encode_offsets(text, add_special_tokens=False)
    assert offsets == sorted(offsets)
    for token_id, offset in zip(token_ids, offsets, strict=True):
        piece = tokenizer.piece(token_id)
        if piece.text is None:
            assert piece.content in text[offset : offset + len(piece.content)].encode()
        else:
            assert text.startswith(piece.text, offset)


def test_the_parts_of_an_emoji_are_tokens_with_bytes_of_their_own(tokenizer: GgufTokenizer) -> None:
    token_ids = tokenizer.encode("🎉", add_special_tokens=False)
    assert len(token_ids) == 3
    assert [tokenizer.piece(token_id).text for token_id in token_ids] == [None] * 3
    assert b"".join(tokenizer.piece(token_id).content for token_id in token_ids) == "🎉".encode()
    assert tokenizer.decode(token_ids[:2]) == "\ufffd"


def test_special_tokens_are_known_for_what_they_are(tokenizer: GgufTokenizer) -> None:
    start, user = tokenizer.encode("<|im_start|>user", add_special_tokens=False)
    assert tokenizer.piece(start).is_special
    assert tokenizer.piece(start).text == "<|im_start|>"
    assert not tokenizer.piece(user).is_special


@pytest.mark.parametrize("lacking", [-1, 49152, 2**31, 2**64])
def test_an_id_that_the_vocabulary_lacks_reads_as_nothing(tokenizer: GgufTokenizer, lacking: int) -> None:
    assert tokenizer.piece(lacking).content == b""
    assert tokenizer.decode([lacking, 81, lacking]) == tokenizer.decode([81])


def test_no_token_stands_for_more_than_the_longest(tokenizer: GgufTokenizer) -> None:
    assert tokenizer.longest_entry == 81


def test_half_a_surrogate_pair_is_no_failure(tokenizer: GgufTokenizer) -> None:
    whole = tokenizer.encode("the \ufffd dog", add_special_tokens=False)
    assert tokenizer.encode("the \ud83c dog", add_special_tokens=False) == whole
    assert len(tokenizer.encode_offsets("the \ud83c dog", add_special_tokens=False)) == len(whole)


def test_the_file_says_what_ends_an_answer(model: GgufModel) -> None:
    assert model.eos_token_id == 2
    assert model.end_token_ids() == [0, 2, 4]
    assert (model.token_text("bos"), model.token_text("eos")) == ("<|im_start|>", "<|im_end|>")
    assert model.chat_template is not None
    assert "<|im_start|>" in model.chat_template
