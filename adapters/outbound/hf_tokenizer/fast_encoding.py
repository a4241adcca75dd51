"""Token ids at a tenth of the cost: by fastokens, for tokenizers of which it is known to give the same ids.

It takes more of them than are known here. docs/adr/0010-fastokens-where-it-is-known.md says what was compared.
"""

import logging
import os
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

from tokenizers import AddedToken, Tokenizer, models

from adapters.outbound.hf_tokenizer.vocabulary import parts

Encode = Callable[[str, bool], list[int] | None]
"""Of a text, and whether special tokens are added: its token ids, or None where only the library can tell."""

PARTS: Final = frozenset({"ByteLevel", "Digits", "NFC", "Prepend", "Replace", "Split", "TemplateProcessing"})
"""What normalizes texts, splits them, and adds special tokens."""

_LETTERS: Final = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_LOWER: Final = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
_UPPER: Final = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
_SHORT: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SIGNS: Final = r" ?[^\s\p{L}\p{N}]+"
_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
PATTERNS: Final = frozenset(
    {
        rf"{_SHORT}|{_LETTERS}|\p{{N}}{{1,3}}|{_SIGNS}[\r\n]*|{_SPACES}",  # Llama 3
        rf"{_SHORT}|{_LETTERS}|\p{{N}}|{_SIGNS}[\r\n]*|{_SPACES}",  # Qwen 2 and 3
        rf"{_LOWER}{_SHORT}?|{_UPPER}{_SHORT}?|\p{{N}}{{1,3}}|{_SIGNS}[\r\n/]*|{_SPACES}",  # gpt-oss
        rf"{_LOWER}|{_UPPER}|\p{{N}}|{_SIGNS}[\r\n/]*|{_SPACES}",  # Mistral Nemo
        r"\p{N}{1,3}",  # DeepSeek has three, one after the other
        "[一-龥\u3040-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
        "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    }
)
"""Expressions that models split texts by. Two libraries of regular expressions agree on these, not on any."""

HARD_TEXTS: Final = (
    "",
    " ",
    "don't I'LL we'Ve 'ſ 's's",
    "1 12 123 1234 12345 3.14 ١٢٣ Ⅷ ² ½",
    "  two   three \t tab\n\n\nlines \r\n \n x   ",
    "e\u0301 é ﬁ ſ K Å İ ǅ 각 \u1100\u1161 क्षि",
    "你好,世界 日本語 ひらがな カタカナ 한국어 ไทย",
    "🎉👍🏽👩‍👩‍👧‍👦 \u200b\u200d\ufeff\u2028\u3000\u00a0\u180e\x00\x7f\x85 \ufffd \U0010ffff",
    "def f(x):\n    return {x: [1, 2]}  # ...!!! ->\n\t/* http://a.b/?c=d&e=f */",
    "<0x0A> <s></s> <unk> ▁ ▁▁ Ġ Ċ <|im_start|> ##ing",
    "a" * 300 + " " * 100 + "ab" * 100 + "!" * 100,
)

_log = logging.getLogger(__name__)


def fast_encoding(tokenizer: Tokenizer) -> Encode | None:
    """None if it is not known to give the tokenizer's own ids. Takes 0.2 s for 50,000 entries."""
    try:
        if not _is_known(tokenizer):
            return None
        encode = _encoding(tokenizer)
        differing = _differing(encode, tokenizer)
    except Exception as error:
        _log.debug("no fast encoding: %s", error)
        return None
    if differing is None:
        return encode
    _log.debug("no fast encoding: it differs at %r", differing)
    return None


class FastEncodingToCome:
    """It is made in a thread, beside what else there is to do: most of the time it takes without the interpreter."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """The tokenizer must not be changed any more."""
        self._thread = ThreadPoolExecutor(1)
        self._encode = self._thread.submit(fast_encoding, tokenizer)

    def result(self) -> Encode | None:
        """Once it is there."""
        self._thread.shutdown()  # whose end frees the 9 MB that fastokens keeps for each
        return self._encode.result()


def _encoding(tokenizer: Tokenizer) -> Encode:
    # One thread is enough for a prompt, and costs the least; to know whole prompts again is not worth 32 MB.
    os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")
    os.environ.setdefault("FASTOKENS_INPUT_CACHE", "0")
    import fastokens  # not there on every platform

    fast: Any = fastokens.Tokenizer.from_json_str(tokenizer.to_str())

    def encode(text: str, add_special_tokens: bool) -> list[int] | None:
        try:
            ids: list[int] = fast.encode(text, add_special_tokens).ids
        except ValueError:
            return None  # half a surrogate pair, or a byte that the vocabulary lacks
        return ids

    return encode


def _differing(encode: Encode, tokenizer: Tokenizer) -> str | None:
    """The first of some hard texts that the library gives other ids for."""
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    for text in (*HARD_TEXTS, "a".join(added), " ".join(added)):
        for add_special_tokens in (False, True):
            expected = tokenizer.encode(text, add_special_tokens=add_special_tokens).ids
            if encode(text, add_special_tokens) not in (expected, None):
                return text
    return None


def _is_known(tokenizer: Tokenizer) -> bool:
    model = tokenizer.model
    if not isinstance(model, models.BPE) or model.dropout:
        return False
    if model.continuing_subword_prefix or model.end_of_word_suffix:
        return False
    components = (tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.post_processor)
    if not all(_is_known_part(part) for component in components for part in parts(component)):
        return False
    added = tokenizer.get_added_tokens_decoder().values()
    if any(token.single_word or token.lstrip or token.rstrip for token in added):
        return False
    if any(token.normalized for token in added) and (any(parts(tokenizer.normalizer)) or _can_meet(added)):
        return False
    # What is written in letters that are no entries themselves is made by no merge. fastokens finds it all the same.
    entries = tokenizer.get_vocab(with_added_tokens=False).keys()
    return entries >= set("".join(entries - {token.content for token in added}))


def _is_known_part(part: dict[str, Any]) -> bool:
    if part["type"] not in PARTS:
        return False
    pattern = part.get("pattern", {}).get("Regex")
    return pattern is None or (pattern in PATTERNS and part.get("behavior") == "Isolated" and not part["invert"])


def _can_meet(added: Collection[AddedToken]) -> bool:
    """Whether a text can have two of them that share a letter: which one counts then is a matter of their kind."""
    contents = sorted(token.content for token in added)
    starts, others = {content[:1] for content in contents}, "".join(content[1:] for content in contents)
    return not starts.isdisjoint(others) or any(second.startswith(first) for first, second in pairwise(contents))
