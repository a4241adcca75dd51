"""The differences from vLLM's Python frontend that are meant.

Each is named for its rule, which docs/compatibility.md explains, or for what is not built, and says exactly what we
must give instead: a difference that none of them accounts for is a failure.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tests.real_engine import parity
from tests.real_engine.answers import Json
from tests.real_engine.parity import Difference
from tests.real_engine.questions import Question
from tests.real_engine.vocabulary import PLACEHOLDER, Vocabulary, token_id

FINGERPRINT = re.compile(r"vllm-(.+)-[0-9a-f]{8}")
PART_OF_A_CHARACTER = re.compile(r"bytes:(\\x[0-9a-f]{2})+")


class Case(NamedTuple):
    """One question and our answer to it, for a deviation to judge a difference by."""

    question: Question
    ours: Json
    vocabulary: Vocabulary

    @property
    def choice(self) -> Json:
        return self.ours["choices"][0]

    @property
    def text(self) -> str:
        return self.choice["message"]["content"] if self.question.is_chat else self.choice["text"]

    @property
    def tokens(self) -> Sequence[str]:
        logprobs = self.choice["logprobs"]
        return [row["token"] for row in logprobs["content"]] if self.question.is_chat else logprobs["tokens"]

    @property
    def row_ids(self) -> Sequence[int]:
        """The token of each row. Empty when the answer does not tell."""
        if self.question.body.get("return_tokens_as_token_ids"):
            return [token_id(token) for token in self.tokens]
        prompt = self.choice.get("prompt_token_ids") if self.question.body.get("echo") else None
        return [*(prompt or ()), *(self.choice["token_ids"] or ())]


def unfinished_character_is_shown(difference: Difference, case: Case) -> bool:
    """Where the output ends inside a character: U+FFFD in the text and in the last row's sampled token."""
    if case.choice["finish_reason"] != "length" or not case.text.endswith("\ufffd"):
        return False
    match difference.path:
        case ("choices", 0, "text") | ("choices", 0, "message", "content"):
            return difference.ours == f"{difference.theirs}\ufffd" == case.vocabulary.decode(case.row_ids)
        case ("choices", 0, "logprobs", "content", row, "token" | "top_logprobs", *rest):
            return rest in ([], [0, "token"]) and _is_last(row, case) and _marks(difference)
        case ("choices", 0, "logprobs", "tokens", row):
            return _is_last(row, case) and _marks(difference)
    return False


def bytes_are_the_tokens_own(difference: Difference, case: Case) -> bool:
    match difference.path:
        case ("choices", 0, "logprobs", "content", row, "bytes"):
            entry, ids = case.choice["logprobs"]["content"][row], case.row_ids
        case ("choices", 0, "logprobs", "content", row, "top_logprobs", column, "bytes"):
            entry, ids = case.choice["logprobs"]["content"][row]["top_logprobs"][column], ()
        case _:
            return False
    ours, theirs = bytes(difference.ours), bytes(difference.theirs)
    if entry["token"].startswith(PLACEHOLDER):
        return ours == case.vocabulary.bytes_of(token_id(entry["token"]))
    if ids:
        return ours == case.vocabulary.bytes_of(ids[row])
    # The id is not told. It is a part of a character: they give nothing, or with its last part all of it.
    return not _is_text(ours) and theirs in (b"", entry["token"].encode())


def alternatives_do_not_collide(difference: Difference, case: Case) -> bool:
    """Parts of a character are keyed by their bytes; theirs all have the key "", and the last one's value stays."""
    match difference.path:
        case ("choices", 0, "logprobs", "top_logprobs", row, parity.KEYS):
            as_theirs = ["" if PART_OF_A_CHARACTER.fullmatch(key) else key for key in difference.ours]
            if _is_last(row, case) and as_theirs[0] == "\ufffd":
                as_theirs[0] = ""
            return list(dict.fromkeys(as_theirs)) == difference.theirs
        case ("choices", 0, "logprobs", "top_logprobs", row, ""):
            return difference.ours == case.choice["logprobs"]["token_logprobs"][row]
    return False


def offsets_are_the_texts(difference: Difference, case: Case) -> bool:
    return (
        difference.path == ("choices", 0, "logprobs", "text_offset")
        and case.row_ids != []
        and difference.ours == case.vocabulary.text_offsets(case.row_ids)
    )


def echo_stays_with_token_ids(difference: Difference, case: Case) -> bool:
    body = case.question.body
    return (
        difference.path == ("choices", 0, "text")
        and bool(body.get("echo") and body.get("return_token_ids"))
        and difference.ours == body["prompt"] + difference.theirs
    )


def hidden_token_is_not_counted(difference: Difference, case: Case) -> bool:
    if case.question.body.get("max_tokens") != 0:
        return False
    match difference.path:
        case ("usage", "completion_tokens" | "total_tokens"):
            return difference.theirs - difference.ours == 1
        case ("choices", 0, "token_ids"):
            return difference.ours == []
    return False


def hash_of_another_kind(difference: Difference, case: Case) -> bool:
    """The same version, and a hash of what each knows of its engine."""
    if difference.path != ("system_fingerprint",):
        return False
    ours, theirs = FINGERPRINT.fullmatch(difference.ours), FINGERPRINT.fullmatch(difference.theirs)
    return bool(ours and theirs and ours[1] == theirs[1])


def no_prompt_logprobs(difference: Difference, case: Case) -> bool:
    return difference.path == ("choices", 0, "prompt_logprobs") and difference.ours is None


DEVIATIONS: Mapping[str, Callable[[Difference, Case], bool]] = {
    "2.3 character left incomplete at the end": unfinished_character_is_shown,
    "3.1 bytes": bytes_are_the_tokens_own,
    "5.3 alternative that is part of a character": alternatives_do_not_collide,
    "5.4 text_offset": offsets_are_the_texts,
    "6.1 echo with return_token_ids": echo_stays_with_token_ids,
    "6.3 echo with max_tokens 0": hidden_token_is_not_counted,
    "hash in system_fingerprint": hash_of_another_kind,
    "not built: prompt_logprobs": no_prompt_logprobs,
}


def reasons(difference: Difference, case: Case) -> list[str]:
    """The deviations that account for the difference; none where it is not meant."""
    return [name for name, accounts_for in DEVIATIONS.items() if accounts_for(difference, case)]


def _is_last(row: int, case: Case) -> bool:
    return row == len(case.tokens) - 1


def _marks(difference: Difference) -> bool:
    return (difference.ours, difference.theirs) == ("\ufffd", "")


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
