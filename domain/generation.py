"""A generation: what is asked of an engine, and what comes of it, step by step."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain, groupby
from typing import Any

from msgspec import Struct

from domain.logprobs import LogprobColumns, joined_columns
from domain.lora import LoraAdapter
from domain.sampling import SamplingParams
from domain.speculation import Speculation
from domain.timing import EngineStart

PART_CELLS = 1 << 12
"""Scores in one part of many, if it is not a single row: some 100 us to encode."""


class FinishReason(StrEnum):
    """Why a generation ended. One that the engine failed ends in an EngineFailure instead."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    REPETITION = "repetition"


StopReason = int | str
"""The stop string or the stop token id that matched; None beside FinishReason.STOP is the end-of-answer token."""


class GenerationRequest(Struct, frozen=True, kw_only=True):
    """What an engine is asked to do. Every value is resolved: an engine applies no defaults of its own."""

    request_id: str
    """The caller's. Engines that need it unique make their own of it."""
    prompt_token_ids: Sequence[int]
    sampling: SamplingParams
    priority: int = 0
    """Lower is served earlier, by engines that schedule by it."""
    cache_salt: str | None = None
    """Prompts share cached state only with those of the same salt."""
    session_id: str | None = None
    data_parallel_rank: int | None = None
    """Which of several engines is to take it, counted from 0; None: any."""
    adapter: LoraAdapter | None = None
    """One that was loaded."""


class TransferParams(Struct, frozen=True, gc=False):
    """What an engine says of the caches it leaves behind a request, for whoever goes on with it elsewhere."""

    kv: Mapping[str, Any] | None = None
    ec: Mapping[str, Any] | None = None


class TokenDelta(Struct, frozen=True, gc=False):
    """Everything one engine step produced for one request."""

    token_ids: Sequence[int]
    logprobs: LogprobColumns | None = None
    """One row per token, as wide as was asked for and no wider; None when none were asked for."""
    prompt_logprobs: LogprobColumns | None = None
    """Scores of the prompt from its second token on, with the first output only, when asked for."""
    finish_reason: FinishReason | None = None
    stop_reason: StopReason | None = None
    cached_tokens: int | None = None
    """Prompt tokens that were not computed anew; with the first output only, when the engine tells."""
    created_cache_tokens: int | None = None
    """Prompt tokens that others may now find cached; likewise."""
    transfer: TransferParams | None = None
    """With any output; the last one holds."""
    start: EngineStart | None = None
    """With the first output only, when the engine tells."""
    produced_at: float | None = None
    """Seconds by the engine's own clock, when it tells."""
    speculation: Speculation | None = None
    """With the last output only, when the engine tells."""


class ScoredTokens(Struct, frozen=True, gc=False):
    """Consecutive tokens, how each reads in its place, and the scores of those that have any."""

    token_ids: Sequence[int]
    texts: Sequence[str]
    offsets: Sequence[int]
    """Where each text starts, in characters of the choice's text before any stop string is cut."""
    contexts: Sequence[bytes]
    """The bytes each token, and each alternative to it, is read behind: those of a character begun before it."""
    columns: LogprobColumns | None
    """Scores of the last `columns.rows` tokens."""
    hides_special: bool
    """Whether special tokens are left out of the text, so that they complete and break no character."""
    is_lone: bool = False
    """Whether it is known to be a single token that has a score and reads as it does by itself."""

    @property
    def cells(self) -> int:
        """How many scores there are."""
        return len(self.columns.token_ids) if self.columns else 0

    @property
    def unscored(self) -> int:
        """How many tokens at the start have no score: the first of a prompt."""
        return len(self.token_ids) - (len(self.columns.ranks) if self.columns else 0)

    def parts(self) -> Iterable["ScoredTokens"]:
        """In order, parts that are no more work than others wait for: of each, all tokens have a score or none has,
        and all are read behind the same bytes."""
        columns = self.columns
        if len(self.token_ids) == 1 and columns is not None and columns.ranks:
            return (self,)
        if columns is None or not 0 < len(columns.token_ids) <= PART_CELLS or self.unscored or any(self.contexts):
            return self._parts()
        return (self,)

    def _parts(self) -> Iterator["ScoredTokens"]:
        columns, unscored = self.columns, self.unscored
        most = max(1, PART_CELLS // columns.width) if columns else PART_CELLS
        alike = groupby(range(len(self.token_ids)), key=lambda index: (index < unscored, self.contexts[index]))
        for (is_unscored, _), indexes in alike:
            group = list(indexes)
            for start in range(group[0], group[-1] + 1, most):
                end = min(start + most, group[-1] + 1)
                yield ScoredTokens(
                    self.token_ids[start:end],
                    self.texts[start:end],
                    self.offsets[start:end],
                    self.contexts[start:end],
                    None if is_unscored or columns is None else columns.between(start - unscored, end - unscored),
                    self.hides_special,
                )


class TextDelta(Struct, frozen=True, gc=False):
    """What a client is shown of one engine step."""

    text: str
    token_ids: Sequence[int]
    scored: ScoredTokens | None = None
    """The tokens with their scores, one row per token id; None when none were asked for."""
    finish_reason: FinishReason | None = None
    stop_reason: StopReason | None = None


def joined(deltas: Sequence[TextDelta]) -> TextDelta:
    """Several deltas of one generation, in their order, as one."""
    if len(deltas) == 1:
        return deltas[0]
    scored = [delta.scored for delta in deltas if delta.scored is not None and delta.scored.columns is not None]
    last = deltas[-1]
    return TextDelta(
        "".join([delta.text for delta in deltas]),
        [token_id for delta in deltas for token_id in delta.token_ids],
        _joined_rows(scored) if scored else None,
        last.finish_reason,
        last.stop_reason,
    )


def _joined_rows(parts: Sequence[ScoredTokens]) -> ScoredTokens:
    return ScoredTokens(
        list(chain.from_iterable(part.token_ids for part in parts)),
        list(chain.from_iterable(part.texts for part in parts)),
        list(chain.from_iterable(part.offsets for part in parts)),
        list(chain.from_iterable(part.contexts for part in parts)),
        joined_columns([part.columns for part in parts if part.columns is not None]),
        parts[0].hides_special,
    )


class TokenUsage(Struct, frozen=True, gc=False):
    """Tokens that a request took."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
    """Of the prompt. None where the engine does not tell."""
    created_cache_tokens: int | None = None
