"""Columns to bytes: what chat and completions show of scored tokens.

All numbers of a step are encoded in one call and then dealt out between the fragments of their tokens.
"""

from collections.abc import Sequence

from adapters.inbound.http.openai.fragments import Fragment, TokenDisplay, encode
from domain.generation import ScoredTokens
from domain.logprobs import LOWEST_LOGPROB, WHOLE_VOCABULARY, LogprobColumns, clamp, distinct

NULL = b"null"


def encode_numbers(logprobs: Sequence[float]) -> list[bytes]:
    """Each logprob as JSON, none of them null: what has no JSON, or is too low, is clamped first."""
    if not logprobs:
        return []
    numbers = encode(logprobs)
    if b"null" in numbers or min(logprobs) < LOWEST_LOGPROB:
        numbers = encode(clamp(logprobs))
    return numbers[1:-1].split(b",")


class ChatLogprobs:
    """`choices[].logprobs` of chat: an entry per token, with up to `top_logprobs` alternatives (-1: all)."""

    def __init__(self, display: TokenDisplay, top_logprobs: int) -> None:
        self._display = display
        self._limit = None if top_logprobs == WHOLE_VOCABULARY else top_logprobs
        self._entries: list[bytes] = []

    def add(self, scored: ScoredTokens | None) -> None:
        if scored is None or scored.columns is None:
            return
        columns, display = scored.columns, self._display
        width, numbers = columns.width, encode_numbers(columns.logprobs)
        for index, (token_id, text, context) in enumerate(
            zip(scored.token_ids, scored.texts, scored.contexts, strict=True)
        ):
            start = index * width
            sampled = display.sampled(token_id, text, context)
            parts = [sampled.before, numbers[start], sampled.after, b',"top_logprobs":[']
            if self._limit != 0:
                row = columns.token_ids[start : start + width]
                others = []
                for column in distinct(row)[: self._limit]:
                    other = display.alternative(row[column], context, scored.hides_special) if column else sampled
                    others.append(other.before + numbers[start + column] + other.after + b"}")
                parts.append(b",".join(others))
            parts.append(b"]}")
            self._entries.append(b"".join(parts))

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        entries, self._entries = self._entries, []
        return b'{"content":[' + b",".join(entries) + b"]}"


class CompletionLogprobs:
    """`choices[].logprobs` of completions: four lists of equal length."""

    def __init__(self, display: TokenDisplay) -> None:
        self._display = display
        self._clear()

    def _clear(self) -> None:
        self._offsets: list[int] = []
        self._numbers: list[bytes] = []
        self._tokens: list[bytes] = []
        self._tops: list[bytes] = []

    def add(self, scored: ScoredTokens | None, alternatives: int) -> None:
        """At most so many entries beside the token itself (-1: all there are) at each position."""
        if scored is None:
            return
        columns, unscored = scored.columns, scored.unscored
        numbers = encode_numbers(columns.logprobs) if columns else []
        for index, (token_id, text, context) in enumerate(
            zip(scored.token_ids, scored.texts, scored.contexts, strict=True)
        ):
            token = self._display.sampled(token_id, text, context)
            self._tokens.append(token.token)
            if columns is None or index < unscored:
                self._numbers.append(NULL)
                self._tops.append(NULL)
            else:
                start = (index - unscored) * columns.width
                self._numbers.append(numbers[start])
                width = row_width(columns, alternatives)
                self._tops.append(
                    self._top(scored, columns.token_ids[start : start + width], numbers, start, context, token)
                )
        self._offsets += scored.offsets

    def _top(
        self,
        scored: ScoredTokens,
        row: Sequence[int],
        numbers: list[bytes],
        start: int,
        context: bytes,
        token: Fragment,
    ) -> bytes:
        """One position: the token at it first, then alternatives by rank; where two read the same, the first stays."""
        entries = {token.token: numbers[start]}
        for column in distinct(row)[1:]:
            other = self._display.alternative(row[column], context, scored.hides_special)
            entries.setdefault(other.key, numbers[start + column])
        return b"{" + b",".join([key + b":" + number for key, number in entries.items()]) + b"}"

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        json = b"".join(
            (
                b'{"text_offset":',
                encode(self._offsets),
                b',"token_logprobs":[',
                b",".join(self._numbers),
                b'],"tokens":[',
                b",".join(self._tokens),
                b'],"top_logprobs":[',
                b",".join(self._tops),
                b"]}",
            )
        )
        self._clear()
        return json


def row_width(columns: LogprobColumns, alternatives: int) -> int:
    """How much of a row is shown: the token at its position and so many others (-1: all there are)."""
    return columns.width if alternatives == WHOLE_VOCABULARY else min(alternatives + 1, columns.width)
