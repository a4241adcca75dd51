"""Columns to bytes: what chat and completions show of scored tokens.

All numbers of a step are encoded in one call and then dealt out between the fragments of their tokens.
"""

from collections.abc import Sequence

from adapters.inbound.http.openai.fragments import TokenDisplay, encode
from domain.generation import ScoredTokens
from domain.logprobs import LOWEST_LOGPROB, WHOLE_VOCABULARY, LogprobColumns, clamp, repeats

NULL = b"null"


def encode_numbers(logprobs: Sequence[float]) -> list[bytes]:
    """Each logprob as JSON, none of them null: what has no JSON, or is too low, is clamped first."""
    if not logprobs:
        return []
    if len(logprobs) == 1 and LOWEST_LOGPROB < logprobs[0] <= 0:
        return [encode(logprobs[0])]
    numbers = encode(logprobs)
    if b"null" in numbers or min(logprobs) < LOWEST_LOGPROB:
        numbers = encode(clamp(logprobs))
    return numbers[1:-1].split(b",")


def _each_once(row: Sequence[int], numbers: list[bytes]) -> Sequence[int]:
    """A row's ids, each where it first stands; the numbers of the others are taken out of `numbers`."""
    repeated = repeats(row)
    if not repeated:
        return row
    left = list(row)
    for column in repeated:
        del left[column], numbers[column]
    return left


class ChatLogprobs:
    """`choices[].logprobs` of chat: an entry per token, with up to `top_logprobs` alternatives (-1: all)."""

    def __init__(self, display: TokenDisplay, top_logprobs: int) -> None:
        self._display = display
        self._limit = None if top_logprobs == WHOLE_VOCABULARY else top_logprobs
        self._entries: list[bytes] = []

    def add(self, scored: ScoredTokens | None) -> None:
        if scored is None or scored.columns is None:
            return
        columns, width, limit, display = scored.columns, scored.columns.width, self._limit, self._display
        numbers = encode_numbers(columns.logprobs)
        for index, context in enumerate(scored.contexts):
            sampled = display.sampled(scored.token_ids[index], scored.texts[index], context)
            start, end = index * width, (index + 1) * width
            if limit == 0:
                self._entries.append((sampled.opening + b"]}") % numbers[start])
                continue
            values = numbers[start:end]
            row = _each_once(columns.token_ids[start:end], values)
            forms = display.entries(row[:limit], context, scored.hides_special)
            forms[0] = sampled.opening + sampled.entry
            forms[-1] += b"]}"
            self._entries.append(b",".join(forms) % (values[0], *values[:limit]))

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        entries, self._entries = self._entries, []
        return b'{"content":[%b]}' % b",".join(entries)


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
        columns, unscored, texts = scored.columns, scored.unscored, scored.texts
        numbers, shown = (encode_numbers(columns.logprobs), row_width(columns, alternatives)) if columns else ([], 0)
        for index, context in enumerate(scored.contexts):
            token = self._display.sampled(scored.token_ids[index], texts[index], context)
            self._tokens.append(token.token)
            if columns is None or index < unscored:
                self._numbers.append(NULL)
                self._tops.append(NULL)
                continue
            start = (index - unscored) * columns.width
            values = numbers[start : start + shown]
            row = _each_once(columns.token_ids[start : start + shown], values)
            self._numbers.append(values[0])
            forms = self._display.as_alternatives(row, context, scored.hides_special)
            forms[0] = token.at_position
            self._tops.append(_object(forms, values))
        self._offsets += scored.offsets

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        json = b'{"text_offset":%b,"token_logprobs":[%b],"tokens":[%b],"top_logprobs":[%b]}' % (
            encode(self._offsets),
            b",".join(self._numbers),
            b",".join(self._tokens),
            b",".join(self._tops),
        )
        self._clear()
        return json


def _object(forms: Sequence[bytes], numbers: Sequence[bytes]) -> bytes:
    """Of keys with their numbers; where two keys read the same, the first stays."""
    if len(set(forms)) < len(forms):
        first: dict[bytes, bytes] = {}
        for form, number in zip(forms, numbers, strict=True):
            first.setdefault(form, number)
        forms, numbers = list(first), list(first.values())
    return (b"{" + b",".join(forms) + b"}") % (*numbers,)


def row_width(columns: LogprobColumns, alternatives: int) -> int:
    """How much of a row is shown: the token at its position and so many others (-1: all there are)."""
    return columns.width if alternatives == WHOLE_VOCABULARY else min(alternatives + 1, columns.width)
