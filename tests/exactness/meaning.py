"""What the tokens of a stream mean to a client: text, an end, and how each reads in its place. From whole byte strings.

Nothing here shares code with what is tested, or goes about it in its way: each value is worked out from the beginning.
Rules are numbered as in the contract.
"""

from collections.abc import Sequence
from typing import NamedTuple

from domain.generation import FinishReason
from tests.exactness.streams import Stream
from tests.exactness.utf8 import incomplete, read, whole
from tests.exactness.vocabularies import Vocabulary


class Position(NamedTuple):
    """One token in its place."""

    token_id: int
    content: bytes
    is_shown: bool = True
    """Whether it adds its bytes to the text."""


class Reading(NamedTuple):
    """How each of consecutive tokens reads in its place."""

    texts: list[str]
    offsets: list[int]
    contexts: list[bytes]

    def after(self, count: int) -> "Reading":
        """Without so many tokens at the start."""
        return Reading(self.texts[count:], self.offsets[count:], self.contexts[count:])


class End(NamedTuple):
    """Where a generation ends for the client, and with which text."""

    kept: int
    text: str
    finish: FinishReason
    stop_reason: int | str | None
    completes: bool
    """Whether a token brought the end, and with it a character that is not complete."""

    @property
    def is_by_string(self) -> bool:
        return isinstance(self.stop_reason, str)


class Meaning:
    """Of one prompt of a stream and the output that it gets."""

    def __init__(self, stream: Stream, prompt: int, vocabulary: Vocabulary) -> None:
        self._stream, self._vocabulary = stream, vocabulary
        self.given = stream.prompts[prompt]
        """The prompt as it was sent."""
        ids = self._locate(self.given)[0] if isinstance(self.given, str) else self.given
        self.prompt = [Position(token_id, vocabulary[token_id].content) for token_id in ids]
        self.prompt[0] = Position(ids[0], vocabulary.at_start(ids[0]))
        self._base = self._before_output()
        self.output = [Position(*pair) for pair in zip(stream.token_ids, *self._contents(), strict=True)]
        self.end = self._find_end()
        self.prompt_reading, self.reading = self._read_all()

    def _before_output(self) -> bytes:
        """What stands before the output and is read with it (2.4)."""
        if isinstance(self.given, str):
            return b""
        content = b"".join(position.content for position in self.prompt)
        return content if self._stream.echo else incomplete(content)

    def _contents(self) -> tuple[list[bytes], list[bool]]:
        """Of the output tokens, and which of them the text shows (2.1)."""
        entries = [self._vocabulary[token_id] for token_id in self._stream.token_ids]
        shown = [not (entry.is_special and self._stream.skip_special_tokens) for entry in entries]
        if self._stream.finish is FinishReason.STOP:
            shown[-1] = False
        return [entry.content for entry in entries], shown

    def joined(self, count: int) -> bytes:
        return self._base + b"".join(position.content for position in self.output[:count] if position.is_shown)

    def text(self, count: int, completes: bool = False) -> str:
        """Of so many output tokens."""
        joined = self.joined(count)
        return (read(joined) if completes else whole(joined))[len(whole(self._base)) :]

    def _find_end(self) -> End:
        """The first token that completes a stop string, else the end that the engine gives (7.4)."""
        stream, count = self._stream, len(self.output)
        completes = stream.finish is not FinishReason.ABORT
        for kept in range(stream.min_tokens + 1, count + 1) if stream.stop else ():
            seen = len(self.text(kept - 1))
            for text in (self.text(kept), self.text(kept, completes=completes and kept == count)):
                if match := _first_match(text, seen, stream.stop):
                    start, string = match
                    return End(kept, text[:start], FinishReason.STOP, string, completes=True)
        return End(count, self.text(count, completes), stream.finish, stream.stop_reason, completes)

    def safe(self, count: int) -> str:
        """The text of so many tokens, less what can still become a stop string."""
        text = self.text(count)
        beginnings = [stop[:length] for stop in self._stream.stop for length in range(1, len(stop))]
        held = max((len(beginning) for beginning in beginnings if text.endswith(beginning)), default=0)
        return text[: len(text) - held]

    def echoed(self) -> str:
        if isinstance(self.given, str):
            return self.given
        content = b"".join(position.content for position in self.prompt)
        return read(content) if self._stream.prompt_only else whole(content)

    def _read_all(self) -> tuple[Reading, Reading]:
        """The prompt's tokens, and the output's."""
        count, output = len(self.prompt), self.output[: self.end.kept]
        prompt = self._read(self.prompt, b"", 0, completes=self._stream.prompt_only)
        if self._stream.echo and not isinstance(self.given, str):
            return prompt, self._read([*self.prompt, *output], b"", 0, self.end.completes).after(count)
        if isinstance(self.given, str) and "".join(prompt.texts) != self.given:
            prompt = prompt._replace(offsets=self._locate(self.given)[1])  # 6.2
        start = len(self.given) if self._stream.echo else 0
        return prompt, self._read(output, self._base, start, self.end.completes)

    def _read(self, positions: Sequence[Position], base: bytes, start: int, completes: bool) -> Reading:
        """Rules 2.2, 2.3 and 5.4. `base` is part of a character at most."""
        reading = Reading([], [], [])
        boundary = taken = 0
        for index, position in enumerate(positions):
            before = base + b"".join(each.content for each in positions[:index] if each.is_shown)
            joined = before + position.content if position.is_shown else before
            if not incomplete(before):
                boundary = len(before)
            is_end = completes and index == len(positions) - 1
            text = ""
            if is_end or (position.is_shown and not incomplete(joined)):
                text = read(joined)[taken:]
            reading.contexts.append(before[boundary:])
            reading.offsets.append(start + taken)
            reading.texts.append(text if position.is_shown else text + read(position.content))
            taken += len(text)
        return reading

    def _locate(self, text: str) -> tuple[list[int], list[int]]:
        return self._vocabulary.locate(text, not self._stream.is_chat)


def _first_match(text: str, after: int, stop: Sequence[str]) -> tuple[int, str] | None:
    """Start and name of the stop string that ends first behind `after`."""
    for end in range(after + 1, len(text) + 1):
        for string in stop:
            if text[:end].endswith(string):
                return end - len(string), string
    return None
