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

    def __init__(self, display: TokenDisplay) -> None:
        self._display = display
        self._alone = display.alone_in_chat.lone

    def of(self, scored: ScoredTokens | None, top_logprobs: int) -> bytes:
        """Of these tokens by themselves, as JSON."""
        if top_logprobs or scored is None or not scored.is_lone or (columns := scored.columns) is None:
            return b'{"content":[%b]}' % self.entries(scored, top_logprobs)
        return self._alone[scored.token_ids[0]] % encode_number(columns.logprobs[0])

    def entries(self, scored: ScoredTokens | None, top_logprobs: int) -> bytes:
        """With commas between them."""
        if scored is None or (columns := scored.columns) is None:
            return b""
        tokens, most = self._display.in_chat, sys.maxsize if top_logprobs == WHOLE_VOCABULARY else top_logprobs
        if scored.is_lone:
            token = tokens.lone[scored.token_ids[0]]
            return self._rows(scored, columns, (token.opening,), (token.entry,), most)
        entries = []
        for part in scored.parts():
            if part.columns is not None:
                shown = tokens.of(part)
                openings, firsts = [token.opening for token in shown], [token.entry for token in shown]
                entries.append(self._rows(part, part.columns, openings, firsts, most))
        return b",".join(entries)

    def _rows(
        self,
        part: ScoredTokens,
        columns: LogprobColumns,
        openings: Sequence[Format],
        firsts: Sequence[Format],
        most: int,
    ) -> bytes:
        display = self._display
        kept, make = display.usual_entries if part.is_lone else display.entries(part)
        entries, _ = display.fill_rows(
            columns.token_ids,
            columns.logprobs,
            None,
            columns.width,
            columns.width,
            most,
            openings,
            firsts,
            kept,
            make,
            b"",
            b"]}",
            False,
        )
        return entries


class ChatEntries:
    """The same as it grows."""

    def __init__(self, logprobs: ChatLogprobs, top_logprobs: int) -> None:
        self._logprobs = logprobs
        self._top_logprobs = top_logprobs
        self._entries: list[bytes] = []

    def add(self, scored: ScoredTokens | None) -> None:
        if entries := self._logprobs.entries(scored, self._top_logprobs):
            self._entries.append(entries)

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        json = b'{"content":[%b]}' % b",".join(self._entries)
        self._entries.clear()
        return json


Items = tuple[bytes, bytes, bytes, bytes]
"""Of consecutive tokens: their offsets, logprobs, texts and alternatives, each with commas between them."""


class CompletionLogprobs:
    """`choices[].logprobs` of completions: four lists of equal length, with at most so many alternatives beside the
    token itself (-1: all there are) at each position."""

    def __init__(self, display: TokenDisplay) -> None:
        self._display = display

    def of(self, scored: ScoredTokens | None, alternatives: int) -> bytes:
        """Of these tokens by themselves, as JSON."""
        return _lists(self.items(scored, alternatives))

    def items(self, scored: ScoredTokens | None, alternatives: int) -> Sequence[Items]:
        """In parts."""
        if scored is None:
            return ()
        columns, tokens = scored.columns, self._display.in_completions
        most = sys.maxsize if alternatives == WHOLE_VOCABULARY else alternatives + 1
        if scored.is_lone and columns is not None:
            token = tokens.lone[scored.token_ids[0]]
            tops, numbers = self._rows(scored, columns, (token.score,), most)
            return ((b"%d" % scored.offsets[0], numbers, token.token, tops),)
        items = []
        for part in scored.parts():
            shown = tokens.of(part)
            tops = numbers = b",".join([NULL] * len(shown))
            if part.columns is not None:
                tops, numbers = self._rows(part, part.columns, [token.score for token in shown], most)
            offsets, texts = encode(part.offsets)[1:-1], b",".join([token.token for token in shown])
            items.append((offsets, numbers, texts, tops))
        return items

    def _rows(
        self, part: ScoredTokens, columns: LogprobColumns, firsts: Sequence[Format], most: int
    ) -> tuple[bytes, bytes]:
        display = self._display
        kept, make = display.usual_keyed if part.is_lone else display.keyed(part)
        return display.fill_rows(
            columns.token_ids,
            columns.logprobs,
            None,
            columns.width,
            most,
            most,
            None,
            firsts,
            kept,
            make,
            b"{",
            b"}",
            True,
        )


class CompletionLists:
    """The same as it grows."""

    def __init__(self, logprobs: CompletionLogprobs) -> None:
        self._logprobs = logprobs
        self._items: list[Items] = []

    def add(self, scored: ScoredTokens | None, alternatives: int) -> None:
        self._items += self._logprobs.items(scored, alternatives)

    def take(self) -> bytes:
        """What was added since the last call, as JSON."""
        json = _lists(self._items)
        self._items.clear()
        return json


def _lists(items: Sequence[Items]) -> bytes:
    lists = items[0] if len(items) == 1 else tuple(map(b",".join, zip(*items, strict=True))) or (b"",) * 4
    return b'{"text_offset":[%b],"token_logprobs":[%b],"tokens":[%b],"top_logprobs":[%b]}' % lists


class LogprobDisplay:
    """How scored tokens are shown, by text or by id: the same for every answer that shows them so."""

    def __init__(self, display: TokenDisplay) -> None:
        self.chat = ChatLogprobs(display)
        self.completions = CompletionLogprobs(display)
