"""From engine steps to what a client sees: text, rows and ids (contract 2, 5.4, 7.3 and 7.4)."""

from typing import Any

import pytest

from domain.detokenizer import Detokenizer, read_prompt
from domain.generation import FinishReason, ScoredTokens, TextDelta, TokenDelta
from domain.logprobs import LogprobColumns
from domain.prompt import Prompt
from domain.token_text import TokenPiece
from tests.domain.vocabulary import (
    EOS,
    LACKING,
    LETTER_AND_LEAD,
    PARTY,
    REPLACEMENT,
    TAIL_AND_LETTER,
    TOOL,
    WORD,
    byte_tokens,
    piece_of,
)

STOP, LENGTH, ABORT = FinishReason.STOP, FinishReason.LENGTH, FinishReason.ABORT
H, I, EXCLAMATION = 104, 105, 33  # noqa: E741 - they are the letters


def step(*token_ids: int, finish: FinishReason | None = None, stop_reason: int | None = None) -> TokenDelta:
    """An engine step with one alternative a row: the token's id plus 1000."""
    row_ids = [shown for token_id in token_ids for shown in (token_id, token_id + 1000)]
    columns = LogprobColumns(2, row_ids, [-float(n) for n in row_ids], [1] * len(token_ids))
    return TokenDelta(list(token_ids), columns, finish_reason=finish, stop_reason=stop_reason)


def detokenizer(**how: Any) -> Detokenizer:
    return Detokenizer(piece_of, **how)


def run(*steps: TokenDelta, **how: Any) -> list[TextDelta]:
    feeding = detokenizer(**how)
    return [feeding.feed(delta) for delta in steps]


def rows(deltas: list[TextDelta]) -> list[ScoredTokens]:
    return [delta.scored for delta in deltas if delta.scored is not None]


def shown(deltas: list[TextDelta]) -> tuple[str, list[str], list[int]]:
    """Text, token texts and offsets of a whole answer."""
    return (
        "".join(delta.text for delta in deltas),
        [text for scored in rows(deltas) for text in scored.texts],
        [offset for scored in rows(deltas) for offset in scored.offsets],
    )


class TestText:
    def test_a_whole_token_breaks_a_character_without_scores_as_with_them(self) -> None:
        steps = [step(byte_tokens("🎉")[0]), step(H), step(I, finish=LENGTH)]
        unscored = [TokenDelta(delta.token_ids, finish_reason=delta.finish_reason) for delta in steps]

        assert [delta.text for delta in run(*unscored)] == [delta.text for delta in run(*steps)] == ["", "\ufffdh", "i"]

    def test_tokens_read_one_after_another(self) -> None:
        deltas = run(step(H), step(I, WORD), step(EXCLAMATION, finish=LENGTH))

        assert [delta.text for delta in deltas] == ["h", "i word", "!"]
        assert shown(deltas) == ("hi word!", ["h", "i", " word", "!"], [0, 1, 2, 7])

    def test_a_character_in_parts_belongs_to_the_token_that_completes_it(self) -> None:
        deltas = run(step(LETTER_AND_LEAD), step(0x9F), step(0x8E), step(0x89, finish=LENGTH))

        assert [delta.text for delta in deltas] == ["a", "", "", "🎉"]
        assert shown(deltas)[1:] == (["", "", "", "a🎉"], [0, 0, 0, 0])

    def test_several_tokens_of_one_step_read_like_several_steps(self) -> None:
        together = run(step(*byte_tokens("a🎉"), PARTY, finish=LENGTH))

        assert shown(together) == ("a🎉 🎉", ["a", "", "", "", "🎉", " 🎉"], [0, 1, 1, 1, 1, 2])

    def test_a_broken_character_is_carried_by_the_token_that_breaks_it(self) -> None:
        assert shown(run(step(0xF0, 0x9F), step(I, finish=LENGTH))) == ("\ufffdi", ["", "", "\ufffdi"], [0, 0, 0])

    def test_a_real_replacement_character_is_shown_at_once(self) -> None:
        deltas = run(step(REPLACEMENT), step(I, finish=LENGTH))

        assert [delta.text for delta in deltas] == ["\ufffd", "i"]
        assert shown(deltas)[1] == ["\ufffd", "i"]

    def test_an_id_that_the_tokenizer_lacks_reads_as_nothing(self) -> None:
        assert shown(run(step(H, LACKING, I, finish=LENGTH))) == ("hi", ["h", "", "i"], [0, 1, 1])

    def test_offsets_run_on_from_where_the_output_starts(self) -> None:
        assert shown(run(step(H), step(I), text_start=12))[2] == [12, 13]

    def test_offsets_count_characters(self) -> None:
        offsets = shown(run(step(*byte_tokens("世"), *byte_tokens("🎉"), WORD, finish=LENGTH)))[2]

        assert offsets[-1] == len("世🎉")


class TestSpecialTokens:
    def test_a_hidden_one_is_in_ids_and_rows_under_its_own_name_and_not_in_the_text(self) -> None:
        deltas = run(step(H), step(TOOL), step(I, finish=LENGTH))

        assert [delta.text for delta in deltas] == ["h", "", "i"]
        assert [list(delta.token_ids) for delta in deltas] == [[H], [TOOL], [I]]
        assert shown(deltas)[1:] == (["h", "<tool>", "i"], [0, 1, 1])

    def test_a_hidden_one_inside_a_character_breaks_nothing(self) -> None:
        deltas = run(step(0xF0, TOOL, 0x9F), step(TOOL), step(0x8E, 0x89, I, finish=LENGTH))

        assert shown(deltas) == (
            "🎉i",
            ["", "<tool>", "", "<tool>", "", "🎉", "i"],
            [0, 0, 0, 0, 0, 0, 1],
        )

    def test_a_shown_one_breaks_a_character(self) -> None:
        deltas = run(step(0xF0, TOOL, I, finish=LENGTH), hides_special=False)

        assert shown(deltas) == ("\ufffd<tool>i", ["", "\ufffd<tool>", "i"], [0, 0, 7])

    @pytest.mark.parametrize("hides_special", [True, False])
    def test_rows_say_whether_they_are_hidden(self, hides_special: bool) -> None:
        deltas = run(step(H, TOOL, finish=LENGTH), hides_special=hides_special)

        assert [scored.hides_special for scored in rows(deltas)] == [hides_special]


class TestContexts:
    def test_every_row_has_the_bytes_it_is_read_behind(self) -> None:
        deltas = run(step(LETTER_AND_LEAD, 0x9F), step(TOOL, 0x8E), step(0x89, I, finish=LENGTH))

        contexts = [context for scored in rows(deltas) for context in scored.contexts]
        assert contexts == [b"", b"a\xf0", b"a\xf0\x9f", b"a\xf0\x9f", b"a\xf0\x9f\x8e", b""]

    def test_the_prompts_tail_is_the_first_context(self) -> None:
        deltas = run(step(0x9F), step(0x8E), step(0x89, I, finish=LENGTH), prompt_tail=b"\xf0", text_start=3)

        assert shown(deltas) == ("🎉i", ["", "", "🎉", "i"], [3, 3, 3, 4])
        assert rows(deltas)[0].contexts == [b"\xf0"]

    def test_a_tail_that_the_output_breaks_is_carried_by_the_token_that_breaks_it(self) -> None:
        assert shown(run(step(H, finish=LENGTH), prompt_tail=b"\xf0\x9f")) == ("\ufffdh", ["\ufffdh"], [0])


class TestLoneTokens:
    """Of which an adapter may show what it keeps of their ids."""

    @pytest.mark.parametrize("how", [{}, {"stop": ["never"]}, {"hides_special": False}])
    def test_most_tokens_are(self, how: dict[str, Any]) -> None:
        deltas = run(step(H), step(WORD), step(TOOL), step(LACKING), step(I, finish=LENGTH), **how)

        assert [scored.is_lone for scored in rows(deltas)] == [True] * 5

    @pytest.mark.parametrize("stop", [(), ("never",)])
    def test_parts_of_characters_are_not_nor_what_completes_or_breaks_one(self, stop: tuple[str, ...]) -> None:
        deltas = run(step(0xC3), step(0xA9), step(0xF0), step(H), stop=stop)

        assert shown(deltas)[1] == ["", "é", "", "\ufffdh"]
        assert [scored.is_lone for scored in rows(deltas)] == [False] * 4

    def test_a_hidden_special_one_inside_a_character_is_not(self) -> None:
        """It reads the same there, but what might have stood in its place does not."""
        deltas = run(step(0xF0), step(TOOL), step(0x9F))

        assert [list(scored.texts) for scored in rows(deltas)] == [[""], ["<tool>"], [""]]
        assert [scored.is_lone for scored in rows(deltas)] == [False] * 3

    def test_a_last_part_of_a_character_is_not(self) -> None:
        assert [scored.is_lone for scored in rows(run(step(0xF0, finish=LENGTH)))] == [False]

    def test_several_of_one_step_are_not(self) -> None:
        assert [scored.is_lone for scored in rows(run(step(H, I), step(H, I, finish=LENGTH)))] == [False, False]

    def test_one_without_a_score_is_not(self) -> None:
        unscored = TokenDelta([H], LogprobColumns(2, [], [], []), finish_reason=LENGTH)

        assert [scored.is_lone for scored in rows(run(unscored))] == [False]


class TestTheEnd:
    def test_the_token_that_stopped_it_is_in_ids_and_rows_and_not_in_the_text(self) -> None:
        deltas = run(step(H), step(I, finish=STOP, stop_reason=I))

        assert shown(deltas) == ("h", ["h", "i"], [0, 1])
        assert deltas[-1].token_ids == [I]
        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == (STOP, I)

    def test_only_the_last_token_of_a_step_stopped_it(self) -> None:
        deltas = run(step(H, I, EOS, finish=STOP))

        assert shown(deltas) == ("hi", ["h", "i", "<eos>"], [0, 1, 2])

    def test_it_is_excluded_where_special_tokens_are_shown_too(self) -> None:
        assert shown(run(step(H, EOS, finish=STOP), hides_special=False))[0] == "h"

    @pytest.mark.parametrize("finish", [LENGTH, FinishReason.REPETITION])
    def test_the_last_token_of_any_other_end_is_shown(self, finish: FinishReason) -> None:
        assert shown(run(step(H), step(I, finish=finish)))[0] == "hi"

    def test_an_incomplete_character_at_the_end_is_one_replacement_in_the_last_token(self) -> None:
        assert shown(run(step(H), step(0xF0), step(0x9F, finish=LENGTH))) == ("h\ufffd", ["h", "", "\ufffd"], [0, 1, 1])

    def test_it_carries_the_whole_characters_that_were_held_with_it(self) -> None:
        assert shown(run(step(LETTER_AND_LEAD, finish=LENGTH))) == ("a\ufffd", ["a\ufffd"], [0])

    def test_an_end_without_a_token_drops_an_incomplete_character(self) -> None:
        assert shown(run(step(H, 0xF0), step(finish=ABORT))) == ("h", ["h", ""], [0, 1])

    def test_it_is_dropped_as_well_when_the_end_came_merged_into_the_step_before(self) -> None:
        assert shown(run(step(H, 0xF0, finish=ABORT))) == ("h", ["h", ""], [0, 1])

    def test_an_end_without_a_token_shows_what_a_stop_string_held_back(self) -> None:
        deltas = run(step(H, 0xF0), step(finish=ABORT), stop=["hello"])

        assert [delta.text for delta in deltas] == ["", "h"]
        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == (ABORT, None)

    @pytest.mark.parametrize(
        ("last", "finish", "hides_special"),
        [(EOS, STOP, True), (EOS, STOP, False), (TOOL, LENGTH, True), (H, STOP, True)],
        ids=["end of answer", "end of answer, specials shown", "hidden special", "stop token"],
    )
    @pytest.mark.parametrize("together", [True, False])
    def test_a_last_token_that_adds_no_text_still_carries_the_character_left_incomplete(
        self, last: int, finish: FinishReason, hides_special: bool, together: bool
    ) -> None:
        """The text ends in U+FFFD, as its bytes read; the token before went out as "" and is not changed. So the last
        one carries it before its own text, as it would if its bytes broke the character."""
        steps = [step(I, 0xF0, last, finish=finish)] if together else [step(I, 0xF0), step(last, finish=finish)]
        own = piece_of(last).content.decode()

        deltas = run(*steps, hides_special=hides_special)

        assert shown(deltas) == ("i\ufffd", ["i", "", "\ufffd" + own], [0, 1, 1])
        assert rows(deltas)[-1].contexts[-1] == b"\xf0"


class TestStopStrings:
    def test_tokens_behind_it_in_its_step_are_in_nothing(self) -> None:
        deltas = run(step(*byte_tokens("count: 3")), step(*byte_tokens(" 4 5")), stop=["4"])

        assert shown(deltas)[0] == "count: 3 "
        assert bytes(deltas[-1].token_ids) == b" 4"
        assert rows(deltas)[-1].texts == [" ", "4"]
        assert rows(deltas)[-1].columns == LogprobColumns(
            2, [32, 1032, 52, 1052], [-32.0, -1032.0, -52.0, -1052.0], [1, 1]
        )
        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == (STOP, "4")

    def test_the_token_that_completes_it_keeps_its_full_text(self) -> None:
        deltas = run(step(H, WORD, I), stop=["wo"])

        assert shown(deltas) == ("h ", ["h", " word"], [0, 1])

    def test_rows_and_ids_go_out_while_text_is_held(self) -> None:
        deltas = run(*[step(byte) for byte in b"UVW!"], stop=["UVWXYZ"])

        assert [delta.text for delta in deltas] == ["", "", "", "UVW!"]
        assert [bytes(delta.token_ids) for delta in deltas] == [b"U", b"V", b"W", b"!"]
        assert shown(deltas)[1:] == (["U", "V", "W", "!"], [0, 1, 2, 3])

    def test_it_is_not_found_in_hidden_special_tokens(self) -> None:
        deltas = run(step(H, TOOL, I, finish=LENGTH), stop=["<tool>"])

        assert (shown(deltas)[0], deltas[-1].finish_reason) == ("hi", LENGTH)

    def test_it_is_found_in_shown_ones(self) -> None:
        deltas = run(step(H, TOOL, I), stop=["<tool>"], hides_special=False)

        assert (shown(deltas)[0], deltas[-1].stop_reason) == ("h", "<tool>")

    def test_it_is_found_across_hidden_ones(self) -> None:
        deltas = run(step(H, TOOL, I), stop=["hi"])

        assert (shown(deltas)[0], deltas[-1].stop_reason) == ("", "hi")

    def test_it_is_not_found_in_the_token_that_stopped_the_generation(self) -> None:
        deltas = run(step(H, I, finish=STOP, stop_reason=I), stop=["hi"])

        assert (shown(deltas)[0], deltas[-1].stop_reason) == ("h", I)

    def test_one_that_the_last_token_completes_wins_over_the_length(self) -> None:
        deltas = run(step(H, I, finish=LENGTH), stop=["hi"])

        assert (deltas[-1].finish_reason, deltas[-1].stop_reason) == (STOP, "hi")

    @pytest.mark.parametrize("together", [True, False])
    def test_tokens_up_to_the_minimum_do_not_count(self, together: bool) -> None:
        tokens = byte_tokens("4 4 4")
        steps = [step(*tokens)] if together else [step(token) for token in tokens]

        feeding = detokenizer(stop=["4"], min_tokens=2)
        deltas = []
        for delta in steps:
            deltas.append(feeding.feed(delta))
            if deltas[-1].finish_reason:
                break

        assert shown(deltas)[0] == "4 "
        assert b"".join(bytes(delta.token_ids) for delta in deltas) == b"4 4"

    def test_hidden_tokens_count_towards_the_minimum(self) -> None:
        deltas = run(step(TOOL, TOOL, ord("4")), stop=["4"], min_tokens=2)

        assert deltas[-1].stop_reason == "4"

    def test_a_replacement_at_the_end_can_complete_one(self) -> None:
        deltas = run(step(H, 0xF0, finish=LENGTH), stop=["\ufffd"])

        assert (shown(deltas)[0], deltas[-1].finish_reason, deltas[-1].stop_reason) == ("h", STOP, "\ufffd")

    def test_but_not_within_the_minimum(self) -> None:
        deltas = run(step(H, 0xF0, finish=LENGTH), stop=["\ufffd"], min_tokens=2)

        assert (shown(deltas)[0], deltas[-1].finish_reason, deltas[-1].stop_reason) == ("h\ufffd", LENGTH, None)

    def test_the_token_that_completes_one_and_ends_inside_a_character_carries_it_all(self) -> None:
        deltas = run(step(LETTER_AND_LEAD, TAIL_AND_LETTER), stop=["a"])

        assert shown(deltas) == ("", ["a\ufffd"], [0])


class TestWithoutScores:
    def test_there_are_no_rows_and_the_rest_is_the_same(self) -> None:
        deltas = run(TokenDelta([H, TOOL]), TokenDelta([0xF0], finish_reason=LENGTH))

        assert [delta.scored for delta in deltas] == [None, None]
        assert [delta.text for delta in deltas] == ["h", "\ufffd"]
        assert [list(delta.token_ids) for delta in deltas] == [[H, TOOL], [0xF0]]


class TestScoredPrompt:
    def test_the_first_token_has_no_score_and_special_tokens_count(self) -> None:
        columns = LogprobColumns(1, [0xC3, 0xA9], [-1.0, -2.0], [1, 1])

        scored = read_prompt(Prompt([EOS, 0xC3, 0xA9]), piece_of, piece_of, columns, is_all=False).scored

        assert list(scored.texts) == ["<eos>", "", "é"]
        assert list(scored.offsets) == [0, 5, 5]
        assert list(scored.contexts) == [b"", b"", b"\xc3"]
        assert scored.unscored == 1
        assert scored.columns == columns
        assert not scored.hides_special

    def test_the_first_token_reads_as_it_does_at_the_start_of_a_text(self) -> None:
        """Contract 2.6: there some vocabularies drop the space of a word."""
        start = {WORD: TokenPiece.of(b"word")}

        scored = read_prompt(Prompt([WORD, WORD, H]), piece_of, start.__getitem__, None, is_all=False).scored

        assert (list(scored.texts), list(scored.offsets)) == (["word", " word", "h"], [0, 4, 9])

    def test_offsets_that_the_prompt_has_are_its_own(self) -> None:
        """Contract 6.2: its tokens do not read as its text."""
        prompt = Prompt([EOS, WORD, H], "WORD h", [0, 0, 5])

        scored = read_prompt(prompt, piece_of, piece_of, None, is_all=False).scored

        assert (list(scored.texts), list(scored.offsets)) == (["<eos>", " word", "h"], [0, 0, 5])

    def test_no_scores_are_less_than_all(self) -> None:
        """What the engine left out stands at the start."""
        columns = LogprobColumns(1, [I], [-0.5], [1])

        scored = read_prompt(Prompt([H, H, I]), piece_of, piece_of, columns, is_all=False).scored

        assert scored.unscored == 2

    def test_a_prompt_of_one_token_has_no_score_at_all(self) -> None:
        assert read_prompt(Prompt([H]), piece_of, piece_of, None, is_all=False).scored.unscored == 1

    def test_a_character_that_output_may_complete_is_left_to_it(self) -> None:
        assert list(read_prompt(Prompt([H, 0xF0]), piece_of, piece_of, None, is_all=False).scored.texts) == ["h", ""]

    def test_one_that_nothing_follows_is_a_replacement_in_the_last_token(self) -> None:
        scored = read_prompt(Prompt([H, 0xF0, 0x9F]), piece_of, piece_of, None, is_all=True).scored

        assert (list(scored.texts), list(scored.offsets)) == (["h", "", "\ufffd"], [0, 1, 1])

    def test_its_text_has_whole_characters_that_no_token_of_it_carries(self) -> None:
        reading = read_prompt(Prompt([H, LETTER_AND_LEAD]), piece_of, piece_of, None, is_all=False)

        assert (list(reading.scored.texts), reading.text, reading.held) == (["h", ""], "ha", b"a\xf0")
        output = run(step(TAIL_AND_LETTER, finish=LENGTH), prompt_tail=reading.held, text_start=1)
        assert shown(output) == ("🎉b", ["a🎉b"], [1])
