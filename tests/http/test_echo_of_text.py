"""The echo of a text whose tokens do not read as it was sent, over tokenizers of models (contract 2.6, 6.1 and 6.2)."""

from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from tokenizers import Tokenizer

from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.fakes import tokenizers as fakes
from tests.http.answers import Answer, answer
from tests.http.serving import COMPLETIONS, application, post

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
TEXT = "Hello, CAFÉ 🎉 dog"


@cache
def raw(kind: str) -> Tokenizer:
    made: Tokenizer = getattr(fakes, kind)()
    return made


async def echoed(kind: str, prompt: str | list[int], **fields: Any) -> Answer:
    """The answer of an engine that scores every prompt."""
    tokenizer = HfTokenizer(raw(kind))
    app = application(
        MockEngine(DeterministicModel(tokenizer.vocab_size).start),
        tokenizer=tokenizer,
        vocab_size=tokenizer.vocab_size,
    )
    body = {"prompt": prompt, "echo": True, "logprobs": 1, "max_tokens": 4, "return_token_ids": True} | fields
    return answer(await post(app, COMPLETIONS, body))


def offsets_of(shown: Answer) -> list[int]:
    assert shown.logprobs is not None
    offsets: list[int] = shown.logprobs["text_offset"]
    return offsets


@STREAMED
@pytest.mark.parametrize(
    ("kind", "text", "offsets"),
    [
        # [CLS], hello, the comma, cafe, [UNK] for the emoji, dog, [SEP]: its normaliser takes case and accents away
        ("word_piece", TEXT, [0, 0, 5, 7, 12, 14, 17]),
        # a text starts with `▁`; É and 🎉 are `<unk>`
        ("unigram_without_bytes", "the É 🎉 dog", [0, 3, 4, 5, 6, 7]),
        # <s> before it, which the text that was sent does not have
        ("llama_bpe", "the dog", [0, 0, 3]),
        # <s> before, </s> behind
        ("gemma_bpe", "the dog", [0, 0, 1, 3, 7]),
        # splits at spaces alone, and knows these words of the four
        ("word_level", "Hello, nobody knows  dog, ", [0, 7, 14, 21]),
    ],
)
async def test_offsets_are_those_of_the_tokenizer(kind: str, text: str, offsets: list[int], stream: bool) -> None:
    shown = await echoed(kind, text, stream=stream)

    assert shown.text.startswith(text)
    assert shown.prompt_token_ids == (prompt := raw(kind).encode(text).ids)
    assert len(prompt) == len(offsets)
    assert offsets_of(shown)[: len(offsets)] == offsets
    assert offsets_of(shown)[len(offsets)] == len(text), "where the output starts"


@pytest.mark.parametrize("kind", ["word_piece", "unigram_without_bytes", "word_level", "end_of_word_bpe", "llama_bpe"])
@pytest.mark.parametrize("text", [TEXT, "don't . , ! x", "  two  spaces ", "é and e\u0301 and \ufb01", "日本 🎉🎉 dog"])
async def test_they_are_where_it_found_each_token(kind: str, text: str) -> None:
    """Against the tokenizers library's own spans, which are those of the text as it was sent."""
    encoding = raw(kind).encode(text)
    shown = await echoed(kind, text, max_tokens=0)

    assert shown.text == text
    offsets = offsets_of(shown)
    for offset, (start, _), is_added in zip(offsets, encoding.offsets, encoding.special_tokens_mask, strict=True):
        assert offset in (0, len(text)) if is_added else offset == start
    assert offsets == sorted(offsets)


@pytest.mark.parametrize("field", [{}, {"return_tokens_as_token_ids": True}], ids=["text", "ids"])
async def test_in_either_display(field: dict[str, Any]) -> None:
    assert offsets_of(await echoed("word_piece", TEXT, max_tokens=0, **field)) == [0, 0, 5, 7, 12, 14, 17]


async def test_its_tokens_read_as_what_they_are() -> None:
    shown = await echoed("word_piece", TEXT, max_tokens=0)
    assert shown.tokens == ["[CLS]", " hello", ",", " cafe", "[UNK]", " dog", "[SEP]"]


@STREAMED
@pytest.mark.parametrize("kind", ["byte_level_bpe", "unigram", "unigram_without_bytes"])
async def test_a_text_that_its_tokens_read_as_is_cut_by_them(kind: str, stream: bool) -> None:
    """`▁` at the very start of a text is no space."""
    text = "the dog does not mind"
    shown = await echoed(kind, text, stream=stream)
    prompt = shown.prompt_token_ids
    assert prompt is not None
    offsets = offsets_of(shown)[: len(prompt) + 1]
    assert shown.tokens[: len(prompt)] == [shown.text[start:end] for start, end in pairwise(offsets)]
    assert "".join(shown.tokens[: len(prompt)]) == text


@STREAMED
@pytest.mark.parametrize("kind", ["byte_level_bpe", "llama_bpe", "gemma_bpe", "unigram"])
async def test_token_ids_are_echoed_as_they_are_decoded(kind: str, stream: bool) -> None:
    """Special tokens shown, the space of a first word not."""
    for text in ("the dog, naïve 🎉", TEXT):
        for add_special_tokens in (False, True):
            prompt = raw(kind).encode(text, add_special_tokens=add_special_tokens).ids
            shown = await echoed(kind, prompt, stream=stream, max_tokens=0)
            assert shown.text == HfTokenizer(raw(kind)).decode(prompt)
            assert "".join(shown.tokens) == shown.text
            assert offsets_of(shown) == [len("".join(shown.tokens[:index])) for index in range(len(prompt))]


@STREAMED
async def test_output_runs_on_behind_the_text_as_it_was_sent(stream: bool) -> None:
    tokenizer = HfTokenizer(raw("word_piece"))
    the, dog = tokenizer.encode("the dog", add_special_tokens=False)
    app = application(ScriptedEngine(steps(the, dog, dog)), tokenizer=tokenizer, vocab_size=tokenizer.vocab_size)

    body = {"prompt": "CAFÉ!", "echo": True, "logprobs": 0, "stream": stream}
    shown = answer(await post(app, COMPLETIONS, body))

    assert shown.text == "CAFÉ! the dog dog"
    assert shown.tokens[-3:] == [" the", " dog", " dog"]
    assert offsets_of(shown)[-3:] == [5, 9, 13]
