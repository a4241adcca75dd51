"""The differences from vLLM's Python frontend that are meant.

Each is named for its rule, which docs/logprobs.md and docs/compatibility.md explain, or for what is not built. It
accepts a difference only where both sides are exactly what it says they are: ours what the rule gives, theirs what
vLLM makes of the same tokens. A difference that none of them accounts for is a failure.
"""

import re
from collections.abc import Callable, Mapping
from itertools import accumulate

from tests.real_engine import parity
from tests.real_engine.case import Case, Entry, Row
from tests.real_engine.parity import Difference
from tests.real_engine.vocabulary import placeholder

FINGERPRINT = re.compile(r"vllm-(.+)-[0-9a-f]{8}")


def broken_character_is_carried(difference: Difference, case: Case) -> bool:
    """U+FFFD in the token that breaks a character: `""`, then `"\\ufffdb"`. Theirs drops it: `"b"`."""
    return _reads_otherwise(
        difference, case, lambda entry: entry.place.held == entry.place.their_held and not _is_unfinished(entry)
    )


def first_prompt_token_is_held(difference: Difference, case: Case) -> bool:
    """A character that the first token of a prompt begins. Theirs shows that one as U+FFFD where it is echoed, and has
    nothing in the token that completes it."""
    return _reads_otherwise(
        difference,
        case,
        lambda entry: entry.place.held != entry.place.their_held and not entry.place.is_output,
    )


def unfinished_character_is_shown(difference: Difference, case: Case) -> bool:
    """Where the output ends inside a character: U+FFFD in the text and in the last token. Theirs has nothing."""
    if (index := _text_of(difference, case)) is not None:
        output = case.readings[index].output
        return bool(output) and output[-1].is_unfinished
    return _reads_otherwise(difference, case, _is_unfinished)


def prompt_is_gone_on_with(difference: Difference, case: Case) -> bool:
    """A character that the prompt begins, and the output ends. Theirs repeats the prompt before it in the text, and has
    nothing in the token."""
    if (index := _text_of(difference, case)) is not None:
        return case.readings[index].is_begun_in_prompt
    return _reads_otherwise(difference, case, _goes_on)


def bytes_are_the_tokens_own(difference: Difference, case: Case) -> bool:
    """Theirs are those of what is shown, but for the token itself, which has those of its text in both displays."""
    entry = case.entry(difference.path)
    if entry is None or difference.path[-1] != "bytes":
        return False
    theirs = placeholder(entry.token_id) if case.shows_ids and "top_logprobs" in difference.path else entry.their_text
    own = case.vocabulary.bytes_of(entry.token_id)
    return (bytes(difference.ours), bytes(difference.theirs)) == (own, theirs.encode())


def rank_of_a_tie(difference: Difference, case: Case) -> bool:
    """The real prompt token's, which counts those that are as likely. Theirs is its place among them."""
    match difference.path:
        case (*path, int(row), str(key), "rank") if path[-1:] == ["prompt_logprobs"]:
            cells = parity.at(case.ours, (*path, row))
            logprobs = [cell["logprob"] for cell in cells.values()]
            own = logprobs[0]
            higher, not_lower = (sum(map(compares, logprobs)) for compares in (own.__lt__, own.__le__))
            # those that tie with the last one need not all be there
            is_rank = difference.ours >= not_lower if own == min(logprobs) else difference.ours == not_lower
            return next(iter(cells)) == key and is_rank and higher < difference.theirs < difference.ours
    return False


def echoed_rows_are_as_wide_as_asked(difference: Difference, case: Case) -> bool:
    """Theirs are cut out of what `prompt_logprobs` asks for, when it is there."""
    row = _row_of(difference, case)
    return row is not None and [entry for entry, _ in row.ours] != [entry for entry, _ in row.theirs]


def alternatives_do_not_collide(difference: Difference, case: Case) -> bool:
    """Parts of characters are keyed by their bytes; theirs all have the key "", and the last one's value stays."""
    row = _row_of(difference, case)
    if row is None or case.shows_ids:
        return False
    texts = [entry.their_text for entry, _ in row.theirs]
    return len(set(texts)) < len(texts) or any(not entry.text for entry, _ in row.ours[1:])


def offsets_are_the_texts(difference: Difference, case: Case) -> bool:
    """Theirs are sums of what is shown."""
    match difference.path:
        case ("choices", int(index), "logprobs", "text_offset"):
            shown = case.theirs["choices"][index]["logprobs"]["tokens"]
            return difference.ours == [place.offset for place in case.readings[index].places] and (
                difference.theirs == [0, *accumulate(map(len, shown[:-1]))]
            )
    return False


def echo_stays_with_token_ids(difference: Difference, case: Case) -> bool:
    index = _text_of(difference, case)
    return index is not None and bool(case.question.body.get("echo") and case.question.body.get("return_token_ids"))


def hidden_token_is_not_counted(difference: Difference, case: Case) -> bool:
    if case.question.body.get("max_tokens") != 0:
        return False
    match difference.path:
        case ("usage", "completion_tokens"):
            return (difference.ours, difference.theirs) == (0, len(case.readings))
        case ("usage", "total_tokens"):
            return difference.theirs - difference.ours == len(case.readings)
        case ("choices", int(), "token_ids"):
            return difference.ours == [] and len(difference.theirs) == 1
    return False


def hash_of_another_kind(difference: Difference, case: Case) -> bool:
    """The same version, and a hash of what each knows of its engine."""
    if difference.path != ("system_fingerprint",):
        return False
    ours, theirs = FINGERPRINT.fullmatch(difference.ours), FINGERPRINT.fullmatch(difference.theirs)
    return bool(ours and theirs and ours[1] == theirs[1])


DEVIATIONS: Mapping[str, Callable[[Difference, Case], bool]] = {
    "2.2 broken character": broken_character_is_carried,
    "2.2 character that the first prompt token begins": first_prompt_token_is_held,
    "2.3 character left incomplete at the end": unfinished_character_is_shown,
    "2.4 prompt that ends inside a character": prompt_is_gone_on_with,
    "3.1 bytes": bytes_are_the_tokens_own,
    "4.2 rank of a prompt token that ties": rank_of_a_tie,
    "5.2 echoed rows beside prompt_logprobs": echoed_rows_are_as_wide_as_asked,
    "5.3 alternatives with one text": alternatives_do_not_collide,
    "5.4 text_offset": offsets_are_the_texts,
    "6.1 echo with return_token_ids": echo_stays_with_token_ids,
    "6.3 echo with max_tokens 0": hidden_token_is_not_counted,
    "hash in system_fingerprint": hash_of_another_kind,
}


def reasons(difference: Difference, case: Case) -> list[str]:
    """The deviations that account for the difference; none where it is not meant."""
    return [name for name, accounts_for in DEVIATIONS.items() if accounts_for(difference, case)]


def _text_of(difference: Difference, case: Case) -> int | None:
    """The index of the choice whose text differs, if both are as expected."""
    match difference.path:
        case ("choices", int(index), "text") | ("choices", int(index), "message", "content"):
            reading = case.readings[index]
            if (difference.ours, difference.theirs) == (reading.text, reading.their_text):
                return index
    return None


def _reads_otherwise(difference: Difference, case: Case, is_meant: Callable[[Entry], bool]) -> bool:
    """Whether a token that is shown, itself or as a key, reads otherwise by what `is_meant`, and all as expected."""
    row = _row_of(difference, case)
    if row is not None:
        return not case.shows_ids and any(e.text != e.their_text and is_meant(e) for e, _ in row.ours)
    entry = case.entry(difference.path)
    if entry is None or difference.path[-1] == "bytes" or (case.shows_ids and difference.path[-1] != "decoded_token"):
        return False
    return (difference.ours, difference.theirs) == (entry.text, entry.their_text) and is_meant(entry)


def _row_of(difference: Difference, case: Case) -> Row | None:
    """The position of `top_logprobs` that differs in its keys or in a value, if both sides are all as expected."""
    match difference.path:
        case ("choices", int(index), "logprobs", "top_logprobs", int(place), str()):
            row, path = case.row(index, place), difference.path[:-1]
            is_expected = parity.are_equal(parity.at(case.ours, path), row.shown(case.shows_ids)) and parity.are_equal(
                parity.at(case.theirs, path), row.shown_by_them(case.shows_ids)
            )
            return row if is_expected else None
    return None


def _is_unfinished(entry: Entry) -> bool:
    return entry.place.is_unfinished and not entry.is_alternative


def _goes_on(entry: Entry) -> bool:
    return entry.place.held != entry.place.their_held and entry.place.is_output
