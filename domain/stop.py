"""Stop strings over streamed text."""

from collections.abc import Sequence


class StopStringScanner:
    """Finds the stop string that completes first, and holds back only what can still become one.

    Ties go to the string listed first. A string is matched wherever tokens cut it, and not shown, unless the scanner
    `includes` it: then nothing is held back.
    """

    def __init__(self, stop: Sequence[str], includes: bool = False) -> None:
        self._stop = stop
        self._includes = includes
        self.held = ""
        """What can still become one."""
        self.matched: str | None = None

    def feed(self, text: str, armed: bool = True) -> str:
        """What is now safe to show. A string that completes in unarmed text does not count."""
        buffer = self.held + text
        shown = len(self.held) if self._includes else 0
        if armed and (match := self._first_match(buffer)):
            start, self.matched = match
            self.held = ""
            return buffer[shown : start + len(self.matched) if self._includes else start]
        end = len(buffer) - self._length_to_hold(buffer)
        self.held = buffer[end:]
        return buffer[shown:] if self._includes else buffer[:end]

    def flush(self) -> str:
        """What was held, once the stream ends."""
        held, self.held = self.held, ""
        return "" if self._includes else held

    def _first_match(self, buffer: str) -> tuple[int, str] | None:
        best: tuple[int, int, str] | None = None
        for stop in self._stop:
            # what was held before holds no match of its own, so one must end in the new text
            start = buffer.find(stop, max(0, len(self.held) - len(stop) + 1))
            if start >= 0 and (best is None or start + len(stop) < best[0]):
                best = (start + len(stop), start, stop)
        return best and best[1:]

    def _length_to_hold(self, buffer: str) -> int:
        """The length of the longest end of `buffer` that begins a stop string."""
        longest = 0
        for stop in self._stop:
            for length in range(min(len(stop) - 1, len(buffer)), longest, -1):
                if buffer.endswith(stop[:length]):
                    longest = length
                    break
        return longest
