"""How tokens are chosen, and the ranges in which that is defined."""

from collections.abc import Sequence
from math import inf

from msgspec import Struct

from domain.errors import RequestError

GREEDY_BELOW = 1e-5
"""A lower temperature is greedy sampling. Same as vLLM."""

MOST_SCORED_IDS = 128
"""Same as vLLM."""

LOWEST_TEMPERATURE = 0.01
"""A lower positive temperature is raised to this, against overflow. Same as vLLM."""


class OutOfRange(RequestError):
    """A sampling parameter lies outside the range in which it is defined."""


class SamplingParams(Struct, frozen=True, kw_only=True):
    """What the engine is told about choosing tokens; checked at construction, since an engine may not survive it."""

    max_tokens: int | None = None
    """None: as many as fit behind the prompt, which is resolved before the engine sees it."""
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    """How many of the most likely tokens take part; 0 and -1 mean all."""
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    ignore_eos: bool = False
    eos_token_id: int | None = None
    """The token that ends the answer, unless `ignore_eos`."""
    stop_token_ids: Sequence[int] = ()
    logprobs: int | None = None
    """Alternatives scored beside each sampled token; -1 is the whole vocabulary, None is no scores at all."""
    prompt_logprobs: int | None = None
    """The same for each scored position of the prompt."""
    logprob_token_ids: Sequence[int] | None = None
    """Score these ids beside each sampled token, in this order, instead of the most likely ones."""

    def __post_init__(self) -> None:
        _check("temperature", self.temperature, 0 <= self.temperature <= 2, "in [0, 2]")
        _check("top_p", self.top_p, 0 < self.top_p <= 1, "in (0, 1]")
        _check("top_k", self.top_k, self.top_k >= -1, "-1 or 0 (disabled), or at least 1")
        _check("min_p", self.min_p, 0 <= self.min_p <= 1, "in [0, 1]")
        for name in ("frequency_penalty", "presence_penalty"):
            penalty = getattr(self, name)
            _check(name, penalty, -2 <= penalty <= 2, "in [-2, 2]")
        _check("repetition_penalty", self.repetition_penalty, 0 < self.repetition_penalty < inf, "positive and finite")
        _check("min_tokens", self.min_tokens, self.min_tokens >= 0, "at least 0")
        if self.max_tokens is not None:
            _check("max_tokens", self.max_tokens, self.max_tokens >= 1, "at least 1")
            fits = self.min_tokens <= self.max_tokens
            _check("min_tokens", self.min_tokens, fits, f"at most max_tokens, which is {self.max_tokens}")

        if self.logprob_token_ids is not None:
            count = len(self.logprob_token_ids)
            _check("logprob_token_ids", count, 1 <= count <= MOST_SCORED_IDS, f"1 to {MOST_SCORED_IDS} ids")

    @property
    def alternatives(self) -> int | None:
        """Entries of each row beside the sampled token; -1 is the whole vocabulary, None is no rows at all."""
        return self.logprobs if self.logprob_token_ids is None else len(self.logprob_token_ids)

    @property
    def is_greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW


def _check(param: str, value: float, ok: bool, wanted: str) -> None:
    if not ok:
        raise OutOfRange(f"{param} must be {wanted}, got {value}.", param)
