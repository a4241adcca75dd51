"""However the steps of an engine fall, an answer is the same: the one that its tokens mean taken all at once.

The meaning is worked out here a second time, from whole byte strings and by trying every position, so that it shares
nothing with the machines that are tested.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from domain.detokenizer import Detokenizer
from domain.generation import FinishReason, TextDelta, TokenDelta
from domain.logprobs import LogprobColumns
from tests.domain.vocabulary import (
    EOS,
    LACKING,
    LETTER_AND_LEAD,
    PARTY,
    REPLACEMENT,
    TAIL_AND_LETTER,
    TOOL,
    WORD,
    piece_of,
)


class Ask(NamedTuple):
    token_ids: list[int]
    finish: FinishReason
    hides_special: bool = True
    stop: Sequence[str] = ()
    min_tokens: int = 0
    prompt_tail: bytes = b""
    text_start: int = 0


class Answer(NamedTuple):
    text: str
    token_ids: list[int]
    texts: list[str]
    offsets: list[int]
    row_ids: list[int]
    finish: FinishReason | None
    stop_reason: int | str | None


def incomplete_end(content: bytes) -> int:
    """How many bytes at the end of `content` begin a character."""
    for length in (1, 2, 3):
        end = content[-length:]
        try:
            end.decode()
        except UnicodeDecodeError as error:
            if len(end) == length and error.start == 0 and error.reason == "unexpected end of data":
                return length
    return 0


def whole(content: bytes) -> str:
    return content[: len(content) - incomplete_end(content)].decode(errors="replace")


def first_match(text: str, after: int, stop: Sequence[str]) -> tuple[int, str] | None:
    """Start and name of the first stop string that ends behind `after`."""
    for end in range(after + 1, len(text) + 1):
        for candidate in stop:
            if text[:end].endswith(candidate):
                return end - len(candidate), candidate
    return None


def meaning(ask: Ask) -> Answer:
    token_ids = ask.token_ids
    finish: FinishReason = ask.finish
    stop_reason: int | str | None = None
    completes = finish is not FinishReason.ABORT

    def is_shown(index: int) -> bool:
        stopped_it = ask.finish is FinishReason.STOP and index == len(ask.token_ids) - 1
        return not stopped_it and not (ask.hides_special and piece_of(token_ids[index]).is_special)

    def content(count: int) -> bytes:
        shown = [piece_of(token_ids[index]).content for index in range(count) if is_shown(index)]
        return ask.prompt_tail + b"".join(shown)

    def text_of(count: int) -> str:
        ends = completes and count == len(token_ids)
        return content(count).decode(errors="replace") if ends else whole(content(count))

    text = text_of(len(token_ids))
    for count in range(1, len(token_ids) + 1):
        # the last token brings a match with its own text, or with the replacement of what it leaves incomplete
        texts = [whole(content(count)), text_of(count)]
        if count <= ask.min_tokens:
            continue
        match = None
        before = len(whole(content(count - 1)))
        for candidate in texts:
            match = match or first_match(candidate, before, ask.stop)
        if match:
            text, stop_reason = text_of(count)[: match[0]], match[1]
            finish, completes = FinishReason.STOP, True
            token_ids = token_ids[:count]
            break

    texts, offsets, taken = [], [], 0
    for index in range(len(token_ids)):
        joined = content(index + 1)
        offsets.append(ask.text_start + taken)
        read = ""
        is_last = completes and index == len(token_ids) - 1
        if is_last or (is_shown(index) and not incomplete_end(joined)):
            read = joined.decode(errors="replace")[taken:]
        taken += len(read)
        own = "" if is_shown(index) else piece_of(token_ids[index]).content.decode(errors="replace")
        texts.append(read + own)
    row_ids = [shown for token_id in token_ids for shown in (token_id, token_id + 1000)]
    return Answer(text, token_ids, texts, offsets, row_ids, finish, stop_reason)


def run(ask: Ask, sizes: Sequence[int]) -> tuple[Answer, list[TextDelta]]:
    """The answer from steps of the given sizes, the rest in one step; read no further than its end."""
    feeding = Detokenizer(
        piece_of,
        hides_special=ask.hides_special,
        stop=ask.stop,
        min_tokens=ask.min_tokens,
        prompt_tail=ask.prompt_tail,
        text_start=ask.text_start,
    )
    deltas: list[TextDelta] = []
    rest = ask.token_ids
    for size in [*sizes, len(ask.token_ids)]:
        taken, rest = rest[:size], rest[size:]
        if not rest and ask.finish is FinishReason.ABORT and size % 2:
            steps = [TokenDelta(taken, columns(taken)), TokenDelta([], columns([]), finish_reason=ask.finish)]
        else:
            steps = [TokenDelta(taken, columns(taken), finish_reason=None if rest else ask.finish)]
        for step in steps:
            deltas.append(feeding.feed(step))
            if deltas[-1].finish_reason is not None:
                return joined(deltas), deltas
    raise AssertionError("the steps came to no end")


def columns(token_ids: Sequence[int]) -> LogprobColumns:
    row_ids = [shown for token_id in token_ids for shown in (token_id, token_id + 1000)]
    return LogprobColumns(2, row_ids, [-1.0] * len(row_ids), [1] * len(token_ids))


def joined(deltas: list[TextDelta]) -> Answer:
    scored = [delta.scored for delta in deltas if delta.scored is not None]
    assert all(rows.columns and rows.columns.rows == len(rows.token_ids) for rows in scored)
    return Answer(
        "".join(delta.text for delta in deltas),
        [token_id for delta in deltas for token_id in delta.token_ids],
        [text for rows in scored for text in rows.texts],
        [offset for rows in scored for offset in rows.offsets],
        [token_id for rows in scored if rows.columns for token_id in rows.columns.token_ids],
        deltas[-1].finish_reason,
        deltas[-1].stop_reason,
    )


CHARACTERS = st.sampled_from("ab é世🎉\ufffd").map(lambda character: list(character.encode()))
SINGLE = st.one_of(
    st.sampled_from([EOS, TOOL, PARTY, LETTER_AND_LEAD, TAIL_AND_LETTER, REPLACEMENT, LACKING, WORD]),
    st.sampled_from([0xF0, 0x9F, 0x8E, 0x89, 0xC3, 0xED, 0xE0]),
    st.integers(0, 255),
).map(lambda token_id: [token_id])
TOKENS = st.lists(CHARACTERS | SINGLE, min_size=1, max_size=14).map(
    lambda parts: [token_id for part in parts for token_id in part]
)
STOPS = st.lists(st.sampled_from(["a", "ab", "aa", "é", "b世", "🎉", "\ufffd", "word", "<tool>", "ab é"]), max_size=3)
ASKS = st.builds(
    Ask,
    token_ids=TOKENS,
    finish=st.sampled_from([FinishReason.LENGTH, FinishReason.STOP, FinishReason.ABORT]),
    hides_special=st.booleans(),
    stop=STOPS,
    min_tokens=st.integers(0, 4),
    prompt_tail=st.sampled_from([b"", b"", b"\xc3", b"\xf0\x9f", b"\xf0\x9f\x8e"]),
    text_start=st.sampled_from([0, 7]),
)
SIZES = st.lists(st.integers(1, 4), max_size=30)
NO_STOP = ASKS.map(lambda ask: ask._replace(stop=()))


@given(ASKS, SIZES)
@example(Ask([0xF0, EOS], FinishReason.STOP), [1])
@example(Ask([0xF0, TOOL, 0x9F, 0x8E, 0x89], FinishReason.LENGTH), [2, 1])
@example(Ask([97, 0xF0], FinishReason.ABORT), [])
def test_any_cut_into_steps_gives_what_the_tokens_mean(ask: Ask, sizes: list[int]) -> None:
    expected = meaning(ask)

    assert run(ask, sizes)[0] == expected
    assert run(ask, [])[0] == expected
    assert run(ask, [1] * len(ask.token_ids))[0] == expected


@given(NO_STOP, SIZES)
def test_the_text_is_the_shown_bytes_and_the_shown_tokens_join_to_it(ask: Ask, sizes: list[int]) -> None:
    """Contract 2.1 and 2.2, where the last token is shown or leaves nothing incomplete."""
    answer, _ = run(ask, sizes)
    hidden = [ask.hides_special and piece_of(token_id).is_special for token_id in answer.token_ids]
    if ask.finish is FinishReason.STOP:
        hidden[-1] = True
    content = ask.prompt_tail + b"".join(
        piece_of(token_id).content
        for token_id, is_hidden in zip(answer.token_ids, hidden, strict=True)
        if not is_hidden
    )

    if ask.finish is FinishReason.ABORT:
        assert answer.text == whole(content)
    else:
        assert answer.text == content.decode(errors="replace")
        carried = hidden[-1] and incomplete_end(content)
        if not carried:
            shown = [text for text, is_hidden in zip(answer.texts, hidden, strict=True) if not is_hidden]
            assert "".join(shown) == answer.text


@given(NO_STOP, SIZES)
def test_offsets_are_where_the_texts_start(ask: Ask, sizes: list[int]) -> None:
    """Contract 5.4: each shown token's text stands in the answer's text at its offset."""
    answer, _ = run(ask, sizes)
    last = len(answer.token_ids) - 1

    for index, (text, offset) in enumerate(zip(answer.texts, answer.offsets, strict=True)):
        is_hidden = ask.hides_special and piece_of(answer.token_ids[index]).is_special
        if not is_hidden and not (ask.finish is FinishReason.STOP and index == last):
            start = offset - ask.text_start
            assert answer.text[start : start + len(text)] == text
    assert answer.offsets == sorted(answer.offsets)


@given(ASKS, SIZES)
def test_text_waits_only_for_a_character_or_a_stop_string(ask: Ask, sizes: list[int]) -> None:
    """Contract 7.5."""
    _, deltas = run(ask, sizes)
    sent = ""
    token_ids: list[int] = []
    for delta in deltas[:-1]:
        sent += delta.text
        token_ids += delta.token_ids
        shown = [piece_of(token_id) for token_id in token_ids]
        text = whole(
            ask.prompt_tail + b"".join(piece.content for piece in shown if not (ask.hides_special and piece.is_special))
        )
        waiting = text[len(sent) :]
        assert text == sent + waiting
        assert waiting == "" or any(stop.startswith(waiting) and stop != waiting for stop in ask.stop)
