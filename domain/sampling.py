"""How tokens are chosen, and the ranges in which that is defined."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from msgspec import Struct

from domain.errors import RequestError
from domain.structured_outputs import StructuredOutputs

MOST_SCORED_IDS = 128
"""Same as vLLM."""

LOWEST_TEMPERATURE = 0.01
"""A lower positive temperature is raised to this, against overflow. Same as vLLM."""


class OutOfRange(RequestError):
    """A sampling parameter lies outside the range in which it is defined."""


class RepetitionDetection(Struct, frozen=True, kw_only=True):
    """Ends an answer that repeats itself."""

    max_pattern_size: int = 0
    """Tokens of the longest pattern looked for; 0 looks for none."""
    min_pattern_size: int = 0
    min_count: int = 0
    """How often a pattern must follow itself."""

    def __post_init__(self) -> None:
        name = "repetition_detection"
        if not 0 <= self.min_pattern_size <= self.max_pattern_size:
            raise _refused(name, self.min_pattern_size, "of sizes with 0 <= min_pattern_size <= max_pattern_size")
        if self.max_pattern_size != 0 and self.min_count < 2:
            raise _refused(name, self.min_count, "of a min_count of at least 2")


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
    ignored_stop_token_ids: Sequence[int] = ()
    """What would end the answer but for `ignore_eos`, beside `eos_token_id`. Before `min_tokens` neither is sampled."""
    logprobs: int | None = None
    """Alternatives scored beside each sampled token; -1 is the whole vocabulary, None is no scores at all."""
    prompt_logprobs: int | None = None
    """The same for each scored position of the prompt."""
    logit_bias: Mapping[int, float] | None = None
    """What is added to the logit of each of these ids."""
    allowed_token_ids: Sequence[int] | None = None
    """Only these ids are sampled; None: any."""
    bad_words_token_ids: Sequence[Sequence[int]] | None = None
    """Token sequences that are never completed."""
    repetition_detection: RepetitionDetection | None = None
    structured_outputs: StructuredOutputs | None = None
    """The form that the output is held to; None: any."""
    extra_args: Mapping[str, Any] | None = None
    """What the engine's own extensions are told, passed on as it came."""
    logprob_token_ids: Sequence[int] | None = None
    """Score these ids beside each sampled token, in this order, instead of the most likely ones."""
    routed_experts_prompt_start: int = 0
    """From which prompt token on an engine that tells the experts of each token is to do so."""

    def __post_init__(self) -> None:
        if not 0 <= self.temperature <= 2:
            raise _refused("temperature", self.temperature, "in [0, 2]")
        if not 0 < self.top_p <= 1:
            raise _refused("top_p", self.top_p, "in (0, 1]")
        if not self.top_k >= -1:
            raise _refused("top_k", self.top_k, "-1 or 0 (disabled), or at least 1")
        if not 0 <= self.min_p <= 1:
            raise _refused("min_p", self.min_p, "in [0, 1]")
        if not -2 <= self.frequency_penalty <= 2:
            raise _refused("frequency_penalty", self.frequency_penalty, "in [-2, 2]")
        if not -2 <= self.presence_penalty <= 2:
            raise _refused("presence_penalty", self.presence_penalty, "in [-2, 2]")
        if not 0 < self.repetition_penalty < inf:
            raise _refused("repetition_penalty", self.repetition_penalty, "positive and finite")
        if not self.min_tokens >= 0:
            raise _refused("min_tokens", self.min_tokens, "at least 0")
        if self.max_tokens is not None:
            if not self.max_tokens >= 1:
                raise _refused("max_tokens", self.max_tokens, "at least 1")
            if self.min_tokens > self.max_tokens:
                raise _refused("min_tokens", self.min_tokens, f"at most max_tokens, which is {self.max_tokens}")
        if self.logprob_token_ids is not None:
            count = len(self.logprob_token_ids)
            if not 1 <= count <= MOST_SCORED_IDS:
                raise _refused("logprob_token_ids", count, f"1 to {MOST_SCORED_IDS} ids")

    @property
    def alternatives(self) -> int | None:
        """Entries of each row beside the sampled token; -1 is the whole vocabulary, None is no rows at all."""
        return self.logprobs if self.logprob_token_ids is None else len(self.logprob_token_ids)

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0


def _refused(param: str, value: float, wanted: str) -> OutOfRange:
    return OutOfRange(f"{param} must be {wanted}, got {value}.", param)
