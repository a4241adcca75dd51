"""Readable answers, byte by byte."""

from collections.abc import Callable
from typing import Final

_PLAIN = (
    "about again always answer before better between bright carry clear come copper could deep each early engine even "
    "every fair field find first follow garden gentle give good green hand harbour here house known large later light "
    "little many morning mountain music never night often only open other paper people place quiet rather river round "
    "several simple small some sound still stone story street summer table there thing through time token under very "
    "voice water where while window winter with word world write year young"
)
PLAIN: Final = _PLAIN.split()

HARD: Final = ["café", "naïve", "déjà", "世界", "日本", "привет", "Ωμέγα", "🎉", "👍🏽"]
"""Words with characters of two, three and four bytes."""

SHORTEST: Final = 8
LONGEST: Final = 42
"""Bytes after which a sentence ends with the word it is in."""


class ByteWords:
    """An endless text of sentences in UTF-8, the first of which begins with an ASCII letter."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        """`draw` gives 64 arbitrary bits for an index, the same each time."""
        self._draw = draw
        self._drawn = 0
        self._sentence = b""
        self._position = 0

    @property
    def may_end(self) -> bool:
        """A sentence was just completed."""
        return 0 < self._position == len(self._sentence)

    def next_byte(self) -> int:
        if self._position == len(self._sentence):
            self._sentence = (b" " if self._sentence else b"") + self._next_sentence()
            self._position = 0
        self._position += 1
        return self._sentence[self._position - 1]

    def _next_sentence(self) -> bytes:
        enough = SHORTEST + self._next_draw() % (LONGEST - SHORTEST)
        sentence = self._next_word(PLAIN)
        while len(sentence) < enough:
            draw = self._next_draw()
            sentence += b" " if draw & 7 else b", "
            sentence += self._next_word(PLAIN if draw >> 3 & 7 else HARD)
        return sentence + b"."

    def _next_word(self, words: list[str]) -> bytes:
        return words[self._next_draw() % len(words)].encode()

    def _next_draw(self) -> int:
        self._drawn += 1
        return self._draw(self._drawn)
