"""Columns to bytes: what chat and completions show of scored tokens."""

import sys
from collections.abc import Sequence

from adapters.inbound.http.openai.encoding import NULL, encode, encode_number
from adapters.inbound.http.openai.filling import Format
from adapters.inbound.http.openai.fragments import TokenDisplay
from domain.generation import ScoredTokens
from domain.logprobs import WHOLE_VOCABULARY, LogprobColumns


class ChatLogprobs:
    """`choices[].logprobs` of chat: an entry per token, with up to `top_logprobs` alternatives (-1: all)."""

    def __init__(self, display: TokenDisplay, top_logprobs: int) -> None:
        self._display = display
        self._limit = sys.maxsize if top_logprobs == WHOLE_VOCABULARY else top_logprobs
        self._entries: list[bytes] = []

    def add(self, scored: ScoredTokens | None) -> None:
        if entries := self._items(scored):
            self._entries.append(entries)

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        json = b'{"content":[%b]}' % b",".join(self._entries)
        self._entries.clear()
        return json

    def of(self, scored: ScoredTokens | None) -> bytes:
        """These by themselves, as JSON."""
        return b'{"content":[%b]}' % self._items(scored)

    def _items(self, scored: ScoredTokens | None) -> bytes:
        if scored is None or (columns := scored.columns) is None:
            return b""
        sampled = self._display.sampled
        if len(scored.texts) == 1 and columns.ranks:
            token = sampled(scored.token_ids[0], scored.texts[0], scored.contexts[0])
            if self._limit:
                return self._rows(scored, columns, (token.opening,), (token.entry,))
            return (token.opening + b"]}") % encode_number(columns.logprobs[0])
        items = []
        for part in scored.parts():
            if part.columns is not None:
                tokens = list(map(sampled, part.token_ids, part.texts, part.contexts))
                openings, firsts = [token.opening for token in tokens], [token.entry for token in tokens]
                items.append(self._rows(part, part.columns, openings, firsts))
        return b",".join(items)

    def _rows(
        self, part: ScoredTokens, columns: LogprobColumns, openings: Sequence[Format], firsts: Sequence[Format]
    ) -> bytes:
        display, context = self._display, part.contexts[0]
        kept, make = display.entries(context, part.hides_special) if context else display.usual_entries
        entries, _ = display.fill_rows(
            columns.token_ids,
            columns.logprobs,
            None,
            columns.width,
            columns.width,
            self._limit,
            openings,
            firsts,
            kept,
            make,
            b"",
            b"]}",
            False,
        )
        return entries


Items = tuple[bytes, bytes, bytes, bytes]
"""Of consecutive tokens: their offsets, logprobs, texts and alternatives, each with commas between them."""


class CompletionLogprobs:
    """`choices[].logprobs` of completions: four lists of equal length."""

    def __init__(self, display: TokenDisplay) -> None:
        self._display = display
        self._items: list[Items] = []

    def add(self, scored: ScoredTokens | None, alternatives: int) -> None:
        """At most so many entries beside the token itself (-1: all there are) at each position."""
        self._items += self._items_of(scored, alternatives)

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        json = _lists(self._items)
        self._items.clear()
        return json

    def of(self, scored: ScoredTokens | None, alternatives: int) -> bytes:
        """These by themselves, as JSON."""
        return _lists(self._items_of(scored, alternatives))

    def _items_of(self, scored: ScoredTokens | None, alternatives: int) -> Sequence[Items]:
        if scored is None:
            return ()
        columns, sampled = scored.columns, self._display.sampled
        shown = sys.maxsize if alternatives == WHOLE_VOCABULARY else alternatives + 1
        if len(scored.texts) == 1 and columns is not None and columns.ranks:
            token = sampled(scored.token_ids[0], scored.texts[0], scored.contexts[0])
            tops, numbers = self._rows(scored, columns, (token.at_position,), shown)
            return ((b"%d" % scored.offsets[0], numbers, token.token, tops),)
        items = []
        for part in scored.parts():
            tokens = list(map(sampled, part.token_ids, part.texts, part.contexts))
            tops = numbers = b",".join([NULL] * len(tokens))
            if part.columns is not None:
                tops, numbers = self._rows(part, part.columns, [token.at_position for token in tokens], shown)
            offsets, texts = encode(part.offsets)[1:-1], b",".join([token.token for token in tokens])
            items.append((offsets, numbers, texts, tops))
        return items

    def _rows(
        self, part: ScoredTokens, columns: LogprobColumns, firsts: Sequence[Format], shown: int
    ) -> tuple[bytes, bytes]:
        display, context = self._display, part.contexts[0]
        kept, make = display.as_alternatives(context, part.hides_special) if context else display.usual_alternatives
        return display.fill_rows(
            columns.token_ids,
            columns.logprobs,
            None,
            columns.width,
            shown,
            shown,
            None,
            firsts,
            kept,
            make,
            b"{",
            b"}",
            True,
        )


def _lists(items: Sequence[Items]) -> bytes:
    lists = items[0] if len(items) == 1 else tuple(map(b",".join, zip(*items, strict=True))) or (b"",) * 4
    return b'{"text_offset":[%b],"token_logprobs":[%b],"tokens":[%b],"top_logprobs":[%b]}' % lists
