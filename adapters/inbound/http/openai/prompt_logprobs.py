"""`prompt_logprobs`: what was likely at each token of a prompt, by id."""

from adapters.inbound.http.openai.fragments import MOST_FRAGMENTS, encode
from adapters.inbound.http.openai.logprobs import NULL, encode_numbers, row_width
from domain.detokenizer import PieceOf
from domain.generation import ScoredTokens
from domain.token_text import text_after


class PromptDisplay:
    """How the tokens of prompts are shown: under their ids, by their texts, whatever the rule says. There is one per
    server."""

    def __init__(self, piece_of: PieceOf) -> None:
        self._piece_of = piece_of
        self._cells: dict[int, tuple[bytes, bytes]] = {}
        """By id: what stands before the logprob of a token behind a whole character, and what behind its rank."""

    def logprobs(self, scored: ScoredTokens, alternatives: int) -> bytes:
        """Per token null, or a map of at most so many (-1: all there are) and, before them, the token itself."""
        columns, unscored = scored.columns, scored.unscored
        entries = [NULL] * unscored
        if columns is not None:
            width = row_width(columns, alternatives)
            by_column = [b',"rank":%d' % column for column in range(width)]
            for place, rank in enumerate(columns.ranks):
                index, start = unscored + place, place * columns.width
                row, context = columns.token_ids[start : start + width], scored.contexts[index]
                numbers = encode_numbers(columns.logprobs[start : start + width])
                ranks = [b',"rank":%d' % rank if rank else b',"rank":null', *by_column[1:]]
                before, after = _cell(row[0], scored.texts[index])
                cells = {row[0]: before + numbers[0] + ranks[0] + after}
                for token_id, number, its_rank in zip(row, numbers, ranks, strict=True):
                    if token_id not in cells:  # the token itself may be one of the likely ones
                        before, after = self._alternative(token_id, context, scored.hides_special)
                        cells[token_id] = before + number + its_rank + after
                entries.append(b"{" + b",".join(cells.values()) + b"}")
        return b"[" + b",".join(entries) + b"]"

    def _alternative(self, token_id: int, context: bytes, hides_special: bool) -> tuple[bytes, bytes]:
        """The token behind `context`, the bytes of a character begun before it."""
        if context:
            piece = self._piece_of(token_id)
            if not (hides_special and piece.is_special):
                return _cell(token_id, text_after(context, piece))
        cell = self._cells.get(token_id)
        if cell is None:
            if len(self._cells) >= MOST_FRAGMENTS:
                self._cells.clear()
            cell = self._cells[token_id] = _cell(token_id, text_after(b"", self._piece_of(token_id)))
        return cell


def _cell(token_id: int, text: str) -> tuple[bytes, bytes]:
    return b'"%d":{"logprob":' % token_id, b',"decoded_token":%b}' % encode(text)
