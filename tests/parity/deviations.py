"""The differences from vLLM's Python frontend that are meant, each named as its row in docs/compatibility.md.

It accepts a difference only where both sides are exactly what the row says they are. How tokens read is judged as on
the real engine.
"""

from collections.abc import Callable, Mapping
from itertools import accumulate

from tests.parity.answers import Answer
from tests.parity.comparison import answer_differences
from tests.parity.corpus import PROMPT_TEXT
from tests.parity.engine import BEGIN_ID
from tests.parity.model import BEGIN
from tests.parity.pair import Pair
from tests.parity.refusals import REFUSALS, names_the_field
from tests.real_engine import deviations as of_tokens
from tests.real_engine.parity import Difference
from tests.real_engine.readings import Reading


def type_is_strict(difference: Difference, pair: Pair) -> bool:
    """400 by the field's name, where theirs takes the value for one of the right type. That one is answered alike."""
    if pair.case.meant is None or pair.ours.status != 400 or not names_the_field(pair.ours, pair):
        return False
    return pair.probes.meant is not None and _is_alike(pair.probes.meant, pair)


def null_is_absent(difference: Difference, pair: Pair) -> bool:
    """Theirs refuses the null; ours answers as without it."""
    if pair.theirs.status != 400 or pair.probes.meant is None or pair.case.meant is not None:
        return False
    return pair.ours.status == 200 and not list(answer_differences(pair.ours, pair.probes.meant))


def echo_is_what_is_left(difference: Difference, pair: Pair) -> bool:
    """Of a prompt that was cut at its start. Theirs is all of it."""
    if not (pair.asked.get("echo") and pair.asked.get("truncate_prompt_tokens")) or pair.read is None:
        return False
    match difference.path:
        case ("choices", int(index), "text"):
            ours, theirs = difference.ours, difference.theirs
        case ("chunks", str(index), "texts") if difference.ours[1:] == difference.theirs[1:]:
            ours, theirs = difference.ours[0], difference.theirs[0]
        case _:
            return False
    left = "".join(place.text for place in pair.read.readings[int(index)].prompt)
    whole = PROMPT_TEXT
    return whole.endswith(left) and ours.startswith(left) and theirs == whole + ours.removeprefix(left)


def echoed_rows_are_as_wide_as_asked(difference: Difference, pair: Pair) -> bool:
    """The engine is asked for the wider of both. Theirs is asked for `prompt_logprobs` only."""
    if difference.path != ("asked", 0, "sampling_params", "prompt_logprobs") or not pair.asked.get("echo"):
        return False
    wanted = pair.asked["logprobs"], pair.asked["prompt_logprobs"]
    return (difference.ours, difference.theirs) == (max(wanted), wanted[1])


def offsets_are_the_tokenizers(difference: Difference, pair: Pair) -> bool:
    """Where in a text each token stands: what is put before it takes no room. Theirs counts it."""
    match difference.path:
        case ("choices", int(index), "logprobs", "text_offset") if pair.read is not None:
            reading = pair.read.readings[index]
            ahead = len(BEGIN) if reading.choice.prompt_ids[0] == BEGIN_ID else 0
            shown = pair.read.theirs["choices"][index]["logprobs"]["tokens"]
            return reading.choice.prompt is not None and (
                difference.ours == [max(0, place.offset - ahead) for place in reading.places]
                and difference.theirs == [0, *accumulate(map(len, shown[:-1]))]
            )
    return False


def echo_stays_with_token_ids(difference: Difference, pair: Pair) -> bool:
    """Streamed, in the first chunk."""
    match difference.path:
        case ("chunks", str(), "texts") if pair.asked.get("echo") and pair.asked.get("return_token_ids"):
            (first, *ours), (their_first, *theirs) = difference.ours, difference.theirs
            return bool(ours == theirs) and first == f"{pair.asked['prompt']}{their_first}"
    return False


def nothing_is_not_sent(difference: Difference, pair: Pair) -> bool:
    match difference.path:
        case ("chunks", str(), "empty"):
            return True  # what was left out has nothing to see in it
    return False


def text_is_shown_at_once(difference: Difference, pair: Pair) -> bool:
    """What cannot begin a stop string. Theirs holds back as many characters as the longest has, less one."""
    match difference.path:
        case ("chunks", str(), "texts"):
            stops = pair.asked.get("stop") or []
            longest = max(map(len, [stops] if isinstance(stops, str) else stops), default=1)
            ours, theirs = (list(accumulate(texts)) for texts in (difference.ours, difference.theirs))
            return ours[-1] == theirs[-1] and all(
                one.startswith(other) and len(one) - len(other) < longest
                for one, other in zip(ours, theirs, strict=True)
            )
    return False


def unfinished_character_is_streamed(difference: Difference, pair: Pair) -> bool:
    reading = _streamed_reading(difference, pair)
    return reading is not None and bool(reading.output) and reading.output[-1].is_unfinished


def prompt_is_gone_on_with(difference: Difference, pair: Pair) -> bool:
    reading = _streamed_reading(difference, pair)
    return reading is not None and reading.is_begun_in_prompt


def streamed_echo_is_not_scored(difference: Difference, pair: Pair) -> bool:
    """The scores would not be shown."""
    if not (pair.case.is_chat and pair.case.streams and pair.asked.get("echo")):
        return False
    return _is_left_out(difference, "sampling_params", "prompt_logprobs")


def reasoning_is_not_ended(difference: Difference, pair: Pair) -> bool:
    return pair.asked.get("include_reasoning") is False and _is_left_out(difference, "reasoning_ended")


def special_tokens_are_cut(difference: Difference, pair: Pair) -> bool:
    """As any others, where theirs stay; all else of the answer follows from what the prompt is."""
    kept = pair.asked.get("truncate_prompt_tokens")
    if pair.case.is_chat or kept is None or pair.asked.get("truncation_side") or pair.ours.status != 200:
        return False
    ours, theirs = ([request["prompt_token_ids"] for request in answer.asked] for answer in (pair.ours, pair.theirs))
    return all(
        len(one) == len(other) == kept and other == [BEGIN_ID, *one[1:]]
        for one, other in zip(ours, theirs, strict=True)
    )


DEVIATIONS: Mapping[str, Callable[[Difference, Pair], bool]] = {
    **REFUSALS,
    "types in a body": type_is_strict,
    "null for a field": null_is_absent,
    "`echo` of a truncated prompt": echo_is_what_is_left,
    "`prompt_logprobs` beside `echo` with other `logprobs`": echoed_rows_are_as_wide_as_asked,
    "`echo` of a text whose tokens do not read as it": offsets_are_the_tokenizers,
    "`echo` with `return_token_ids`": echo_stays_with_token_ids,
    "`echo`, streamed, with `top_logprobs`": streamed_echo_is_not_scored,
    "`include_reasoning: false`": reasoning_is_not_ended,
    "special tokens around a text that is cut": special_tokens_are_cut,
    "chunk with nothing to see in it": nothing_is_not_sent,
    "character left incomplete at the end": unfinished_character_is_streamed,
    "token-id prompt that ends inside a character": prompt_is_gone_on_with,
    "text that may begin a stop string": text_is_shown_at_once,
}


def reasons(difference: Difference, pair: Pair) -> list[str]:
    """The deviations that account for the difference; none where it is not meant."""
    named = [name for name, is_meant in DEVIATIONS.items() if is_meant(difference, pair)]
    if pair.read is not None:
        named += of_tokens.reasons(difference, pair.read)
    return named


def _is_left_out(difference: Difference, *path: str) -> bool:
    """Whether all that an engine request lacks is what stands there in theirs."""
    match difference.path:
        case ("asked", int(), *outer, "(keys)") if outer == list(path[:-1]):
            return bool(difference.ours == [name for name in difference.theirs if name != path[-1]])
    return False


def _streamed_reading(difference: Difference, pair: Pair) -> Reading | None:
    """Of a choice whose chunks have other texts, where the joined ones differ, and as they are meant to."""
    match difference.path:
        case ("chunks", str(index), "texts") if pair.read is not None:
            reading = pair.read.readings[int(index)]
            texts = "".join(difference.ours), "".join(difference.theirs)
            return reading if texts == (reading.text, reading.their_text) and texts[0] != texts[1] else None
    return None


def _is_alike(ours: Answer, pair: Pair) -> bool:
    """Whether every difference between them is meant."""
    like = Pair(
        pair.case._replace(body=pair.case.meant or pair.case.body, meant=None),
        ours,
        pair.theirs,
        pair.probes,
        pair.vocabulary,
    )
    return all(reasons(difference, like) for difference in answer_differences(ours, pair.theirs))
