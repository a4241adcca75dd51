"""A generation: what is asked of an engine, and what comes of it, step by step."""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams


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

    @property
    def unscored(self) -> int:
        """How many tokens at the start have no score: the first of a prompt."""
        return len(self.token_ids) - (self.columns.rows if self.columns else 0)


class TextDelta(Struct, frozen=True, gc=False):
    """What a client is shown of one engine step."""

    text: str
    token_ids: Sequence[int]
    scored: ScoredTokens | None = None
    """The tokens with their scores, one row per token id; None when none were asked for."""
    finish_reason: FinishReason | None = None
    stop_reason: StopReason | None = None


class TokenUsage(Struct, frozen=True, gc=False):
    """Tokens that a request took."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None
