"""`prompt_logprobs`: what was likely at each token of a prompt, by id."""

import sys

from adapters.inbound.http.openai.encoding import NULL, encode
from adapters.inbound.http.openai.filling import FillRows, Format
from adapters.inbound.http.openai.fragments import Forms, forms
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
        self._cells = forms(self._cell)

    def logprobs(self, scored: ScoredTokens, alternatives: int) -> bytes:
        """Per token null, or a map of at most so many (-1: all there are) and, before them, the token itself."""
        shown = sys.maxsize if alternatives == WHOLE_VOCABULARY else alternatives + 1
        entries: list[bytes] = []
        for part in scored.parts():
            columns = part.columns
            if columns is None:
                entries += [NULL] * len(part.token_ids)
                continue
            kept, make = self._alternatives(part.contexts[0], part.hides_special)
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

    def _alternatives(self, context: bytes, hides_special: bool) -> Forms:
        """Tokens behind `context`, the bytes of a character begun before them."""
        if not context:
            return self._cells

        def cell(token_id: int) -> Format:
            hidden = hides_special and self._piece_of(token_id).is_special
            return self._cell(token_id, b"" if hidden else context)

        return Forms([], cell)

    def _cell(self, token_id: int, context: bytes = b"") -> Format:
        return _format(token_id, text_after(context, self._piece_of(token_id)))


def _format(token_id: int, text: str) -> Format:
    """Of an entry with a logprob and a rank."""
    return b'"%d":{"logprob":%%b,"rank":%%b,"decoded_token":%b}' % (token_id, encode(text).replace(b"%", b"%%"))
