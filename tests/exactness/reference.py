"""What the contract says a client gets of a stream: choices, chunks and rows."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.exactness.meaning import Meaning, Reading
from tests.exactness.streams import Rows, Stream
from tests.exactness.utf8 import incomplete, read
from tests.exactness.vocabularies import Vocabulary

LOWEST = -9999.0


class Choice(NamedTuple):
    """What of one choice a client gets at once: all of it, or a chunk."""

    text: str
    token_ids: list[int]
    rows: list[Any]
    """Chat: entries. Completions: token, logprob, alternatives in order, offset."""
    finish_reason: str | None
    stop_reason: int | str | None


class Reference:
    """The answer to one prompt of a stream, with tokens shown by text or by id."""

    def __init__(self, stream: Stream, prompt: int, vocabulary: Vocabulary, shows_ids: bool) -> None:
        self._stream, self._vocabulary, self._shows_ids = stream, vocabulary, shows_ids
        self._prompt_rows = stream.prompt_rows[prompt]
        self.meaning = Meaning(stream, prompt, vocabulary)

    def choice(self) -> Choice:
        """All of it, not streamed."""
        return self.chunks([len(self.meaning.output)])[0]

    def chunks(self, sizes: Sequence[int]) -> list[Choice]:
        """From steps that bring so many tokens: only what carries something, and no text that is not safe (7.5)."""
        stream, end = self._stream, self.meaning.end
        rows, prompt_rows = self._output_rows(), self._echoed_rows()
        if stream.prompt_only:
            return [Choice(self.meaning.echoed(), [], prompt_rows, "length", None)]
        chunks = []
        text, echoed_rows = (self.meaning.echoed(), prompt_rows) if stream.echo else ("", [])
        sent = taken = brought = 0
        for step, size in enumerate(sizes):
            brought += size
            ends = brought >= end.kept if end.is_by_string else step == len(sizes) - 1
            count = min(brought, end.kept)
            visible = end.text if ends else self.meaning.safe(count)
            chunk = Choice(
                text + visible[sent:],
                stream.token_ids[taken:count],
                echoed_rows + rows[taken:count],
                end.finish if ends else None,
                end.stop_reason if ends else None,
            )
            sees_tokens = count > taken and (stream.return_token_ids or stream.alternatives is not None)
            if chunk.text or ends or sees_tokens or (stream.echo and not step):
                chunks.append(chunk)
            text, echoed_rows, sent, taken = "", [], len(visible), count
            if ends:
                return chunks
        raise AssertionError("the steps came to no end")

    def prompt_logprobs(self) -> list[Any] | None:
        """Contract 6.4: maps as the pairs that they have, in order."""
        stream = self._stream
        limit = stream.prompt_logprobs
        if limit is None and stream.echo:
            limit = stream.alternatives
        if limit is None:
            return None
        entries: list[Any] = []
        for place, row in enumerate(self._prompt_scores()):
            if row is None:
                entries.append(None)
                continue
            ids, numbers, rank = row
            entry = []
            for column in _first_ones(ids, limit):
                text = self._read_alternative(ids[column], self.meaning.prompt_reading.contexts[place], hides=False)
                score = {
                    "logprob": numbers[column],
                    "rank": (column or rank) or None,
                    "decoded_token": text if column else self.meaning.prompt_reading.texts[place],
                }
                entry.append((str(ids[column]), score))
            entries.append(entry)
        return entries

    def _output_rows(self) -> list[Any]:
        stream, scores = self._stream, self._stream.rows
        if scores is None or stream.alternatives is None:
            return []
        limit = -1 if stream.logprob_token_ids is not None else stream.alternatives
        width = stream.alternatives if stream.logprob_token_ids is None else len(stream.logprob_token_ids)
        rows = [_cut(scores, place, width) for place in range(self.meaning.end.kept)]
        make = self._entry if stream.is_chat else self._row
        return [
            make(token_id, self.meaning.reading, place, rows[place], limit, stream.skip_special_tokens)
            for place, token_id in enumerate(stream.token_ids[: self.meaning.end.kept])
        ]

    def _echoed_rows(self) -> list[Any]:
        if not self._stream.echo or self._stream.alternatives is None:
            return []
        return [
            self._row(
                position.token_id, self.meaning.prompt_reading, place, row, self._stream.alternatives, hides=False
            )
            for place, (position, row) in enumerate(zip(self.meaning.prompt, self._prompt_scores(), strict=True))
        ]

    def _prompt_scores(self) -> "list[Row | None]":
        scores = self._prompt_rows
        if scores is None:
            return [None] * len(self.meaning.prompt)
        unscored: list[Row | None] = [None] * (len(self.meaning.prompt) - len(scores.ranks))
        return unscored + [_cut(scores, place, -1) for place in range(len(scores.ranks))]

    def _entry(self, token_id: int, reading: Reading, place: int, row: "Row", limit: int, hides: bool) -> Any:
        """Contract 4.1 and 4.2: `limit` counts the sampled token."""
        ids, numbers, _ = row
        shown = f"token_id:{token_id}" if self._shows_ids else reading.texts[place]
        entry = {"token": shown, "logprob": numbers[0], "bytes": list(self._vocabulary[token_id].content)}
        others = []
        for column in _first_ones(ids, -1)[: None if limit == -1 else limit]:
            other = self._shown_alternative(ids[column], reading.contexts[place], hides) if column else shown
            content = self._vocabulary[ids[column]].content
            others.append({"token": other, "logprob": numbers[column], "bytes": list(content)})
        return entry | {"top_logprobs": others}

    def _row(self, token_id: int, reading: Reading, place: int, row: "Row | None", limit: int, hides: bool) -> Any:
        """Contract 5.2 and 5.3: `limit` does not count the token itself."""
        shown = f"token_id:{token_id}" if self._shows_ids else reading.texts[place]
        if row is None:
            return shown, None, None, reading.offsets[place]
        ids, numbers, _ = row
        entries = [(shown, numbers[0])]
        for column in _first_ones(ids, limit)[1:]:
            key = self._shown_alternative(ids[column], reading.contexts[place], hides)
            if not key:
                content = self._vocabulary[ids[column]].content
                key = "bytes:" + "".join(f"\\x{byte:02x}" for byte in content) if content else f"token_id:{ids[column]}"
            if key not in [earlier for earlier, _ in entries]:
                entries.append((key, numbers[column]))
        return shown, numbers[0], entries, reading.offsets[place]

    def _shown_alternative(self, token_id: int, context: bytes, hides: bool) -> str:
        return f"token_id:{token_id}" if self._shows_ids else self._read_alternative(token_id, context, hides)

    def _read_alternative(self, token_id: int, context: bytes, hides: bool) -> str:
        """Contract 2.5 and 2.6."""
        entry = self._vocabulary[token_id]
        if entry.is_special and hides:
            return read(entry.content)
        joined = context + entry.content
        return "" if incomplete(joined) else read(joined)


def references_of(stream: Stream, vocabulary: Vocabulary, shows_ids: bool) -> list[Reference]:
    """One per prompt."""
    return [Reference(stream, prompt, vocabulary, shows_ids) for prompt in range(len(stream.prompts))]


Row = tuple[Sequence[int], Sequence[float], int]
"""Ids, logprobs as they are shown, and the rank of the first."""


def _cut(rows: Rows, place: int, alternatives: int) -> Row:
    """What of an engine's row is this request's."""
    width = rows.width if alternatives == -1 else alternatives + 1
    numbers = [_number(value) for value in rows.logprobs[place]]
    return rows.token_ids[place][:width], numbers[:width], rows.ranks[place]


def _number(value: float) -> float:
    """Contract 7.1."""
    return LOWEST if math.isnan(value) or math.isinf(value) or value < LOWEST else value


def _first_ones(ids: Sequence[int], limit: int) -> list[int]:
    """Columns of the first occurrence of each id among the first `limit` alternatives (-1: all)."""
    columns = range(len(ids) if limit == -1 else min(limit + 1, len(ids)))
    return [column for column in columns if ids[column] not in ids[:column]]
