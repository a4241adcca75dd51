"""How tokens read when each can be more or less than a character (contract 2.2, 2.4 and 2.5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.token_text import MOST_HELD, TokenPiece, TokenTexts, Utf8Reader, text_after, unfinished_character
from tests.domain.vocabulary import (
    EOS,
    LACKING,
    LETTER_AND_LEAD,
    PARTY,
    REPLACEMENT,
    TAIL_AND_LETTER,
    byte_tokens,
    piece_of,
    pieces_of,
)


def read(*contents: bytes) -> list[str]:
    texts = TokenTexts()
    return [texts.read(TokenPiece.of(content)) for content in contents]


class TestPiece:
    @pytest.mark.parametrize(
        ("content", "text"),
        [
            (b"h", "h"),
            (b"", ""),
            (" 🎉".encode(), " 🎉"),
            ("\ufffd".encode(), "\ufffd"),
            (b"\xf0", None),
            (b"\x9f", None),
            (b"a\xf0", None),
            (b"\x9f\x8e\x89b", None),
            (b"\xff", None),
        ],
    )
    def test_only_whole_characters_read_by_themselves(self, content: bytes, text: str | None) -> None:
        piece = TokenPiece.of(content)

        assert piece.text == text
        assert piece.content == content
        assert not piece.is_special


class TestReading:
    def test_the_token_that_completes_a_character_carries_all_of_it(self) -> None:
        assert read(b" \xf0\x9f", b"\x8e", b"\x89") == ["", "", " 🎉"]

    def test_a_token_with_whole_characters_that_ends_inside_another_is_empty(self) -> None:
        assert read(b"ab\xf0", b"\x9f\x8e\x89") == ["", "ab🎉"]

    def test_a_token_can_complete_one_character_and_begin_the_next(self) -> None:
        assert read(b"\xc3", b"\xa9\xc3", b"\xa9") == ["", "", "éé"]

    @pytest.mark.parametrize(
        ("contents", "texts"),
        [
            ([b"\xf0", b"b"], ["", "\ufffdb"]),
            ([b"\xf0\x9f", b"\x8e", b"b"], ["", "", "\ufffdb"]),
            ([b"\xf0\x9f", b"\xf0\x9f", b"\x8e\x89"], ["", "", "\ufffd🎉"]),
            ([b"\xf0", b"\xff"], ["", "\ufffd\ufffd"]),
            ([b"\xed", b"\xa0", b"b"], ["", "\ufffd\ufffd", "b"]),
            ([b"\xe0", b"\x80"], ["", "\ufffd\ufffd"]),
            ([b"\x80"], ["\ufffd"]),
            ([b"\xe4\xb8", b"<eos>"], ["", "\ufffd<eos>"]),
        ],
        ids=[
            "by a letter",
            "late",
            "by another start",
            "by no UTF-8",
            "into a surrogate",
            "into an overlong",
            "from its middle",
            "by a special token",
        ],
    )
    def test_the_token_that_breaks_a_character_carries_its_replacement(
        self, contents: list[bytes], texts: list[str]
    ) -> None:
        assert read(*contents) == texts

    def test_a_real_replacement_character_is_a_character(self) -> None:
        assert read(b"a", "\ufffd".encode(), b"b") == ["a", "\ufffd", "b"]
        assert read(b"\xef", b"\xbf", b"\xbd") == ["", "", "\ufffd"]

    def test_an_entry_that_the_tokenizer_lacks_reads_as_nothing_and_breaks_nothing(self) -> None:
        assert read(b"\xf0\x9f", b"", b"\x8e\x89") == ["", "", "🎉"]

    def test_what_the_prompt_began_is_completed(self) -> None:
        texts = TokenTexts(b"\xf0\x9f")

        assert [texts.read(TokenPiece.of(content)) for content in (b"\x8e", b"\x89", b"!")] == ["", "🎉", "!"]

    def test_the_context_of_the_next_token_is_all_since_the_last_boundary(self) -> None:
        texts = TokenTexts()
        held = []
        for content in (b"a", b"b\xf0", b"\x9f", b"\x8e\x89"):
            texts.read(TokenPiece.of(content))
            held.append(texts.held)

        assert held == [b"", b"b\xf0", b"b\xf0\x9f", b""]

    def test_what_is_left_at_the_end_is_one_replacement(self) -> None:
        texts = TokenTexts()
        texts.read(TokenPiece.of(b"a\xf0\x9f\x8e"))

        assert texts.flush() == "a\ufffd"
        assert texts.flush() == ""


class TestAlternatives:
    """An alternative is read against the context of the sampled token, never against another alternative."""

    @pytest.mark.parametrize(
        ("held", "token_id", "text"),
        [
            (b"", ord("h"), "h"),
            (b"", PARTY, " 🎉"),
            (b"", REPLACEMENT, "\ufffd"),
            (b"", 0xF0, ""),
            (b"", LETTER_AND_LEAD, ""),
            (b"\xf0\x9f\x8e", 0x89, "🎉"),
            (b"\xf0\x9f\x8e", 0x8A, "🎊"),
            (b"\xf0\x9f", 0x8E, ""),
            (b"\xf0", TAIL_AND_LETTER, "🎉b"),
            (b"\xf0\x9f", ord("h"), "\ufffdh"),
            (b"\xf0\x9f", LACKING, ""),
            (b"a\xf0", EOS, "a\ufffd<eos>"),
        ],
    )
    def test_reads_behind_what_was_begun(self, held: bytes, token_id: int, text: str) -> None:
        assert text_after(held, piece_of(token_id)) == text

    def test_reading_one_leaves_the_context_as_it_was(self) -> None:
        texts = TokenTexts()
        texts.read(piece_of(0xF0))

        before = [text_after(texts.held, piece_of(token_id)) for token_id in (0x9F, ord("a"), TAIL_AND_LETTER)]
        again = [text_after(texts.held, piece_of(token_id)) for token_id in (TAIL_AND_LETTER, ord("a"), 0x9F)]

        assert before == ["", "\ufffda", "🎉b"] == again[::-1]

    @given(st.lists(st.sampled_from([0xF0, 0x9F, 0x8E, 0x89, 0xC3, 0xA9, 0x61, 0xFF, PARTY, TAIL_AND_LETTER, EOS])))
    def test_an_alternative_reads_as_the_sampled_token_would(self, token_ids: list[int]) -> None:
        texts = TokenTexts()
        for piece in pieces_of(token_ids):
            assert text_after(texts.held, piece) == texts.read(piece)


class TestTail:
    """Contract 2.4: what a token-id prompt ends with is context for the first output tokens."""

    @pytest.mark.parametrize(
        ("token_ids", "tail"),
        [
            ([], b""),
            ([104], b""),
            (byte_tokens("🎉"), b""),
            (byte_tokens("a🎉")[:-1], b"\xf0\x9f\x8e"),
            ([LETTER_AND_LEAD], b"\xf0"),
            ([LETTER_AND_LEAD, LACKING, 0x9F], b"\xf0\x9f"),
            ([0xF0, EOS], b""),
            ([0xF0, 0xF0, 0x9F], b"\xf0\x9f"),
            ([0x9F, 0x8E], b""),
            ([0xED, 0xA0], b""),
            ([0xED, 0x9F], b"\xed\x9f"),
            ([REPLACEMENT], b""),
        ],
    )
    def test_is_the_bytes_of_a_character_begun(self, token_ids: list[int], tail: bytes) -> None:
        assert unfinished_character(pieces_of(token_ids)) == tail


class TestText:
    """Contract 2.1."""

    def test_only_an_incomplete_character_waits(self) -> None:
        reader = Utf8Reader()

        assert reader.feed(pieces_of([LETTER_AND_LEAD])) == "a"
        assert reader.feed(pieces_of([0x9F])) == ""
        assert reader.feed(pieces_of([0x8E, 0x89, 0x21])) == "🎉!"
        assert reader.flush() == ""

    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_an_incomplete_character_at_the_end_is_one_replacement(self, length: int) -> None:
        reader = Utf8Reader()

        assert reader.feed(pieces_of(byte_tokens("🎉")[:length])) == ""
        assert reader.flush() == "\ufffd"

    @given(st.binary(max_size=12), st.data())
    def test_any_bytes_read_as_python_reads_them_however_they_are_cut(
        self, content: bytes, data: st.DataObject
    ) -> None:
        reader = Utf8Reader()
        text = ""
        rest = list(content)
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            text += reader.feed(pieces_of(rest[:size]))
            rest = rest[size:]

        assert text + reader.flush() == content.decode(errors="replace")


def test_what_never_ends_on_a_character_is_not_held_for_ever() -> None:
    texts = TokenTexts()
    shown = [texts.read(TokenPiece.of(b"\xf0")) for _ in range(1000)]
    assert len(texts.held) <= MOST_HELD
    assert "".join(shown) + texts.flush() == "\ufffd" * 1000
