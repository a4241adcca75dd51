"""`prompt_logprobs`: what was likely at each token of a prompt, by id."""

import sys

from adapters.inbound.http.openai.encoding import NULL, encode
from adapters.inbound.http.openai.filling import FillRows, Format
from adapters.inbound.http.openai.fragments import Alternatives
from domain.detokenizer import PieceOf
from domain.generation import ScoredTokens
from domain.logprobs import WHOLE_VOCABULARY
from domain.token_text import text_after


class PromptDisplay:
    """How the tokens of prompts are shown: under their ids, by their texts, whatever the rule says. There is one per
    server."""

    def __init__(self, piece_of: PieceOf, fill_rows: FillRows) -> None:
        self._piece_of = piece_of
        self._fill_rows = fill_rows
        self._cells = Alternatives(piece_of, self._cell)

    def logprobs(self, scored: ScoredTokens, alternatives: int) -> bytes:
        """Per token null, or a map of at most so many (-1: all there are) and, before them, the token itself."""
        shown = sys.maxsize if alternatives == WHOLE_VOCABULARY else alternatives + 1
        entries: list[bytes] = []
        for part in scored.parts():
            columns = part.columns
            if columns is None:
                entries += [NULL] * len(part.token_ids)
                continue
            kept, make = self._cells.behind(part)
            maps, _ = self._fill_rows(
                columns.token_ids,
                columns.logprobs,
                columns.ranks,
                columns.width,
                shown,
                shown,
                None,
                tuple(map(_format, columns.token_ids[:: columns.width], part.texts)),
                kept,
                make,
                b"{",
                b"}",
                False,
            )
            entries.append(maps)
        return b"[" + b",".join(entries) + b"]"

    def _cell(self, token_id: int, context: bytes) -> Format:
        return _format(token_id, text_after(context, self._piece_of(token_id)))


def _format(token_id: int, text: str) -> Format:
    """Of an entry with a logprob and a rank."""
    return b'"%d":{"logprob":%%b,"rank":%%b,"decoded_token":%b}' % (token_id, encode(text).replace(b"%", b"%%"))
