"""Stop strings over streamed text (contract 7.4 and 7.5; cases 40, 41 and 42 of the public reports)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.stop import StopStringScanner


def scan(stop: list[str], *texts: str, includes: bool = False) -> tuple[list[str], str | None]:
    """What each text made safe to show, up to and including the one that brought a match."""
    scanner = StopStringScanner(stop, includes)
    shown = []
    for text in texts:
        shown.append(scanner.feed(text))
        if scanner.matched is not None:
            break
    return shown, scanner.matched


class TestMatching:
    def test_a_string_over_several_tokens_is_never_shown(self) -> None:
        assert scan(["UVWXYZ"], "UV", "W", "XY", "Z", "!") == (["", "", "", ""], "UVWXYZ")

    def test_a_string_inside_one_text_cuts_it(self) -> None:
        assert scan(["4"], "1 2 3 4 5") == (["1 2 3 "], "4")

    def test_what_stands_before_a_string_is_shown(self) -> None:
        assert scan(["end"], "the e", "nd of") == (["the ", ""], "end")

    def test_the_string_that_completes_first_wins_over_the_one_that_starts_first(self) -> None:
        assert scan(["abcdef", "cd"], "xabcdef") == (["xab"], "cd")

    def test_so_it_does_over_several_texts(self) -> None:
        assert scan(["abcdef", "cd"], "xab", "c", "d", "ef") == (["x", "", "ab"], "cd")

    @pytest.mark.parametrize(("stop", "shown"), [(["bc", "abc"], "xa"), (["abc", "bc"], "x")])
    def test_of_two_that_complete_together_the_one_listed_first_wins(self, stop: list[str], shown: str) -> None:
        assert scan(stop, "xabcx") == ([shown], stop[0])

    def test_a_start_that_turns_out_otherwise_can_hold_the_true_one(self) -> None:
        assert scan(["aab"], "a", "a", "a", "b") == (["", "", "a", ""], "aab")

    def test_characters_count_not_bytes(self) -> None:
        assert scan(["é世🙂"], "aé", "世", "🙂b") == (["a", "", ""], "é世🙂")

    def test_without_a_string_everything_is_shown(self) -> None:
        assert scan([], "a", "b") == (["a", "b"], None)


class TestIncluding:
    def test_the_string_ends_what_is_shown(self) -> None:
        assert scan(["4"], "1 2 3 4 5", includes=True) == (["1 2 3 4"], "4")

    def test_its_parts_are_shown_as_they_come(self) -> None:
        assert scan(["UVWXYZ"], "aUV", "W", "XY", "Z!", includes=True) == (["aUV", "W", "XY", "Z"], "UVWXYZ")

    def test_what_is_shown_already_is_not_shown_twice(self) -> None:
        assert scan(["aab"], "a", "a", "a", "b", includes=True) == (["a", "a", "a", "b"], "aab")

    def test_the_string_that_completes_first_wins(self) -> None:
        assert scan(["abcdef", "cd"], "xabcdef", includes=True) == (["xabcd"], "cd")

    def test_nothing_is_left_to_flush(self) -> None:
        scanner = StopStringScanner(["UVW"], includes=True)
        assert scanner.feed("UV") == "UV"
        assert scanner.flush() == ""

    def test_unarmed_text_is_shown(self) -> None:
        scanner = StopStringScanner(["ab"], includes=True)
        assert [scanner.feed("xab", armed=False), scanner.feed("ab!")] == ["xab", "ab"]
        assert scanner.matched == "ab"


class TestHolding:
    def test_nothing_is_held_that_begins_no_string(self) -> None:
        assert scan(["ZZZZZZZZZZ"], "Hello", " there", "!") == (["Hello", " there", "!"], None)

    def test_what_was_held_for_nothing_is_shown_with_what_follows(self) -> None:
        assert scan(["UVWXYZ"], "UV", "W", "!") == (["", "", "UVW!"], None)

    def test_what_was_held_to_the_end_is_there_to_flush_once(self) -> None:
        scanner = StopStringScanner(["UVWXYZ"])

        assert scanner.feed("aUVW") == "a"
        assert scanner.flush() == "UVW"
        assert scanner.flush() == ""
        assert scanner.matched is None

    def test_only_the_part_that_can_still_become_one_is_held(self) -> None:
        assert scan(["</think>"], "so <", "</th", "ink") == (["so ", "<", ""], None)


class TestArming:
    """A string that completes in the first `min_tokens` does not count."""

    def test_a_string_in_unarmed_text_is_shown(self) -> None:
        scanner = StopStringScanner(["4"])

        assert scanner.feed("3 4 5", armed=False) == "3 4 5"
        assert scanner.matched is None

    def test_a_string_that_began_in_unarmed_text_counts_once_it_completes_in_armed_text(self) -> None:
        scanner = StopStringScanner(["abc"])

        assert scanner.feed("xab", armed=False) == "x"
        assert scanner.feed("c") == ""
        assert scanner.matched == "abc"

    def test_one_that_completed_unarmed_inside_what_is_held_does_not_count_later(self) -> None:
        scanner = StopStringScanner(["abcd", "bc"])

        assert scanner.feed("abc", armed=False) == ""
        assert scanner.feed("x") == "abcx"
        assert scanner.matched is None

    def test_the_next_occurrence_counts(self) -> None:
        scanner = StopStringScanner(["aa"])

        assert scanner.feed("aa", armed=False) == "a"
        assert scanner.feed("a") == ""
        assert scanner.matched == "aa"


STOP = st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=3)
FEEDS = st.lists(st.tuples(st.text("abc", max_size=5), st.booleans()), max_size=8)


def first_to_complete(text: str, armed: list[bool], stop: list[str]) -> tuple[int, str] | None:
    """Start and name of the string that the first armed character to complete one completes, found by trying all."""
    for end in range(1, len(text) + 1):
        for candidate in stop:
            if armed[end - 1] and text[:end].endswith(candidate):
                return end - len(candidate), candidate
    return None


@given(STOP, FEEDS)
def test_any_cut_of_a_text_gives_the_text_up_to_the_string_that_completes_first(
    stop: list[str], feeds: list[tuple[str, bool]]
) -> None:
    text = "".join(part for part, _ in feeds)
    armed = [flag for part, flag in feeds for _ in part]
    expected = first_to_complete(text, armed, stop)

    scanner = StopStringScanner(stop)
    shown = ""
    for part, flag in feeds:
        shown += scanner.feed(part, flag)
        if scanner.matched is not None:
            break
    shown += scanner.flush()

    if expected is None:
        assert (shown, scanner.matched) == (text, None)
    else:
        assert (shown, scanner.matched) == (text[: expected[0]], expected[1])


@given(STOP, FEEDS)
def test_what_is_held_is_the_longest_end_that_begins_a_string_and_no_more(
    stop: list[str], feeds: list[tuple[str, bool]]
) -> None:
    scanner = StopStringScanner(stop)
    fed = shown = ""
    for part, flag in feeds:
        fed += part
        shown += scanner.feed(part, flag)
        if scanner.matched is not None:
            return
        beginnings = {candidate[:length] for candidate in stop for length in range(len(candidate))}
        longest = max(length for length in range(len(fed) + 1) if fed[len(fed) - length :] in beginnings)
        assert fed[len(shown) :] == fed[len(fed) - longest :]
        assert fed.startswith(shown)
