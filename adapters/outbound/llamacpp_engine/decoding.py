"""One request being answered."""

from adapters.outbound.llamacpp_engine.sampler import TokenSampler
from adapters.outbound.llamacpp_engine.scores import Row
from domain.generation import FinishReason, GenerationRequest, StopReason, TokenDelta

Outcome = TokenDelta | Exception
"""A step of a request, or what ended it instead."""


def is_last(outcome: Outcome) -> bool:
    return not isinstance(outcome, TokenDelta) or outcome.finish_reason is not None


class Decoding:
    """Its tokens, and how the next is chosen."""

    slot: int
    """Which of the context's sequences it has, while it runs."""
    sampler: TokenSampler
    """Once it was taken up."""

    def __init__(self, request: GenerationRequest, grammar: str | None, max_model_len: int, queued_at: float) -> None:
        sampling = request.sampling
        room = max_model_len - len(request.prompt_token_ids)
        self.request = request
        self.sampling = sampling
        self.grammar = grammar
        self.queued_at = queued_at
        self.prompt_length = len(request.prompt_token_ids)
        self.token_ids = list(request.prompt_token_ids)
        """The prompt and, behind it, the output."""
        self.output: list[int] = []
        self.scheduled_at: float | None = None
        self.cached_tokens = 0
        """Of the prompt: those that were computed already."""
        self.prompt_rows: list[Row] = []
        self.is_cancelled = False
        """Set by another thread."""
        self._eos = None if sampling.ignore_eos else sampling.eos_token_id
        self._stop = frozenset(sampling.stop_token_ids)
        self._limit = room if sampling.max_tokens is None else min(room, sampling.max_tokens)

    @property
    def scores_prompt(self) -> bool:
        """Whether rows of the prompt are still to be made."""
        return self.sampling.prompt_logprobs is not None and not self.output

    def append(self, token_id: int) -> tuple[FinishReason | None, StopReason | None]:
        """Take the next token of the output; gives how it ends there, if it does."""
        self.token_ids.append(token_id)
        self.output.append(token_id)
        # Same as vLLM: nothing stops before min_tokens, and a stop wins over the length.
        count = len(self.output)
        if count > self.sampling.min_tokens:
            if token_id == self._eos:
                return FinishReason.STOP, None
            if token_id in self._stop:
                return FinishReason.STOP, token_id
        return (FinishReason.LENGTH if count >= self._limit else None), None
