"""From the tokens of engine steps to what a client sees of them: text, rows, and an end by stop string."""

from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple, Protocol

from domain.generation import FinishReason, ScoredTokens, StopReason, TextDelta, TokenDelta
from domain.logprobs import LogprobColumns
from domain.prompt import Prompt
from domain.stop import StopStringScanner
from domain.token_text import TokenPiece, TokenTexts, Utf8Reader, whole_characters

PieceOf = Callable[[int], TokenPiece]

NO_CONTEXT = (b"",)
"""Of one token behind a whole character."""


class TokenReader(Protocol):
    """What a client is shown of each step's tokens."""

    def feed(self, delta: TokenDelta) -> TextDelta: ...


class Unread(TokenReader):
    """Tokens and scores as they come, where nobody wants to know what they read as."""

    def feed(self, delta: TokenDelta) -> TextDelta:
        scored = None
        if delta.logprobs is not None:
            scored = ScoredTokens(delta.token_ids, (), (), (), delta.logprobs, hides_special=False)
        return TextDelta("", delta.token_ids, scored, delta.finish_reason, delta.stop_reason)


class ReadingState(NamedTuple):
    """All that a reading is, between one step and the next."""

    unread: bytes
    """Of a character begun in what is shown."""
    context: bytes
    """What the next token's own text is read behind."""
    offset: int
    """Where that starts, in characters of the choice's text."""
    held: str
    """Text that can still become a stop string."""
    matched: str | None
    """The stop string that was found, with which all ends."""
    seen: int
    """Tokens so far."""


class Detokenizer(TokenReader):
    """One per generation: feed it each TokenDelta, get the TextDelta to show.

    Special tokens add no text where they are hidden, nor does the token that stopped the generation. Text that can
    still become a stop string is held back, as is an incomplete character; rows and ids go out with their own step.
    """

    def __init__(
        self,
        piece_of: PieceOf,
        *,
        hides_special: bool = True,
        stop: Sequence[str] = (),
        include_stop: bool = False,
        min_tokens: int = 0,
        prompt_tail: bytes = b"",
        text_start: int = 0,
    ) -> None:
        """`prompt_tail` ends with a character that the prompt begins and the output completes; whole ones before it
        are shown already, but carried by no token yet. `text_start` is the offset of what the first token carries, in
        the choice's text: 0 unless the prompt is echoed."""
        self._piece_of = piece_of
        self._hides_special = hides_special
        self._include_stop = include_stop
        self._reader = Utf8Reader(prompt_tail)
        self._texts = TokenTexts(prompt_tail)
        self._offset = text_start
        self._scanner = StopStringScanner(stop, include_stop) if stop else None
        self._min_tokens = min_tokens
        self._seen = 0
        self._note_surroundings()

    @property
    def state(self) -> ReadingState:
        scanner = self._scanner
        return ReadingState(
            self._reader.held,
            self._texts.held,
            self._offset,
            scanner.held if scanner else "",
            scanner.matched if scanner else None,
            self._seen,
        )

    def resume(self, state: ReadingState) -> None:
        """Go on where a reading of the same kind was left."""
        self._reader = Utf8Reader(state.unread)
        self._texts = TokenTexts(state.context)
        self._offset, self._seen = state.offset, state.seen
        if self._scanner:
            self._scanner.held, self._scanner.matched = state.held, state.matched
        self._note_surroundings()

    def _note_surroundings(self) -> None:
        self._reads_alone = not (self._scanner or self._reader.held or self._texts.held)
        """Whether the next token is read behind nothing, and looked at for no stop string."""

    def feed(self, delta: TokenDelta) -> TextDelta:
        """Most steps are one token that neither completes nor begins a character, with nothing around it."""
        token_ids = delta.token_ids
        if self._reads_alone and len(token_ids) == 1 and delta.finish_reason is None:
            piece = self._piece_of(token_ids[0])
            text = piece.text
            if text is not None and not piece.is_special:
                self._seen += 1
                if delta.logprobs is None:
                    return TextDelta(text, token_ids)
                scored = ScoredTokens(
                    token_ids, (text,), (self._offset,), NO_CONTEXT, delta.logprobs, self._hides_special, True
                )
                self._offset += len(text)
                return TextDelta(text, token_ids, scored)
        return self._feed_any(delta)

    def _feed_any(self, delta: TokenDelta) -> TextDelta:
        token_ids = delta.token_ids
        pieces = [self._piece_of(token_id) for token_id in token_ids]
        shown = [not (self._hides_special and piece.is_special) for piece in pieces]
        if pieces and delta.finish_reason is FinishReason.STOP and not self._include_stop:
            shown[-1] = False  # the token that stopped it

        text, kept = self._show(pieces, shown)
        completes = False
        finish_reason: FinishReason | None = delta.finish_reason
        stop_reason: StopReason | None = delta.stop_reason
        if self._scanner and self._scanner.matched is not None:
            finish_reason, stop_reason = FinishReason.STOP, self._scanner.matched
            token_ids = token_ids[:kept]
            completes = True
        elif finish_reason is not None:
            # an abort brings no token: one beside it is of a step before, merged
            completes = bool(pieces) and finish_reason is not FinishReason.ABORT
            text += self._flush(completes, armed=self._seen + len(pieces) > self._min_tokens)
            if self._scanner and self._scanner.matched is not None:
                finish_reason, stop_reason = FinishReason.STOP, self._scanner.matched

        scored = None
        if delta.logprobs is not None:
            columns = delta.logprobs.first(len(token_ids))
            scored = self._score(columns, token_ids, pieces, shown, completes)
        self._seen += len(token_ids)
        self._note_surroundings()
        return TextDelta(text, token_ids, scored, finish_reason, stop_reason)

    def _show(self, pieces: list[TokenPiece], shown: list[bool]) -> tuple[str, int]:
        """The text that is safe to show, and how many tokens are part of the answer."""
        if self._scanner is None:
            return self._reader.feed(list(compress(pieces, shown))), len(pieces)
        text = ""
        for count, (piece, show) in enumerate(zip(pieces, shown, strict=True), start=1):
            if show:
                text += self._scanner.feed(self._reader.feed((piece,)), armed=self._seen + count > self._min_tokens)
                if self._scanner.matched is not None:
                    return text, count
        return text, len(pieces)

    def _flush(self, completes: bool, armed: bool) -> str:
        """An end that brings a token shows an unfinished character as U+FFFD; one that brings none drops it."""
        rest = self._reader.flush() if completes else ""
        if self._scanner is None:
            return rest
        text = self._scanner.feed(rest, armed) if rest else ""
        return text + self._scanner.flush()

    def _score(
        self,
        columns: LogprobColumns,
        token_ids: Sequence[int],
        pieces: list[TokenPiece],
        shown: list[bool],
        completes: bool,
    ) -> ScoredTokens:
        """A last token carries the character that stays incomplete before its own text, even where the text hides
        the token: the one that began it may have gone out already, and the rows read the same either way."""
        texts: list[str] = []
        offsets: list[int] = []
        contexts: list[bytes] = []
        last = len(token_ids) - 1
        for index in range(len(token_ids)):
            piece = pieces[index]
            contexts.append(self._texts.held)
            offsets.append(self._offset)
            text, hidden = (self._texts.read(piece), "") if shown[index] else ("", _own_text(piece))
            if completes and index == last:
                text += self._texts.flush()
            self._offset += len(text)
            texts.append(text + hidden)
        is_lone = len(texts) == 1 == columns.rows and not contexts[0] and texts[0] == pieces[0].text
        return ScoredTokens(token_ids, texts, offsets, contexts, columns, self._hides_special, is_lone)


def _own_text(piece: TokenPiece) -> str:
    return piece.text if piece.text is not None else piece.content.decode(errors="replace")


class PromptReading(NamedTuple):
    """The tokens of a prompt, and what is left for the output to begin with."""

    scored: ScoredTokens
    held: bytes
    """Bytes since the last token that ended on a character: the output's first tokens carry them."""

    @property
    def text(self) -> str:
        """All whole characters, also those that no token carries yet."""
        return "".join(self.scored.texts) + whole_characters(self.held)


def read_prompt(
    prompt: Prompt, piece_of: PieceOf, starting_piece_of: PieceOf, columns: LogprobColumns | None, *, is_all: bool
) -> PromptReading:
    """The tokens of a prompt as it is echoed: special tokens shown, the first one without a score.

    A character left incomplete is for the output to go on with, unless the prompt `is_all` there is."""
    reader = TokenTexts()
    texts: list[str] = []
    offsets: list[int] = []
    contexts: list[bytes] = []
    offset = 0
    for token_id in prompt.token_ids:
        contexts.append(reader.held)
        offsets.append(offset)
        text = reader.read(piece_of(token_id) if texts else starting_piece_of(token_id))
        offset += len(text)
        texts.append(text)
    if is_all and texts:
        texts[-1] += reader.flush()
    offsets_shown = prompt.offsets or offsets
    scored = ScoredTokens(prompt.token_ids, texts, offsets_shown, contexts, columns, hides_special=False)
    return PromptReading(scored, reader.held)
