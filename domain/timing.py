"""When an engine did what for one request, and how long that took."""

from msgspec import Struct


class EngineStart(Struct, frozen=True, gc=False):
    """How a request came to its first output, in seconds by the engine's own clock. None is what it does not tell."""

    queued_at: float | None
    scheduled_at: float | None
    """When it was taken up the first time."""
    first_output_at: float | None


class RequestTiming(Struct, frozen=True):
    """A request from its queue to its last output. Same as vLLM: what depends on a time that is not known is None."""

    start: EngineStart
    last_output_at: float | None
    completion_tokens: int

    @property
    def queued_s(self) -> float | None:
        """Waiting to be taken up."""
        return _between(self.start.queued_at, self.start.scheduled_at)

    @property
    def first_output_s(self) -> float | None:
        """From there to the first output: the queue is no part of it."""
        return _between(self.start.scheduled_at, self.start.first_output_at)

    @property
    def generating_s(self) -> float | None:
        """From the first output to the last."""
        return _between(self.start.first_output_at, self.last_output_at)

    @property
    def per_token_s(self) -> float | None:
        """Between one token and the next, on average."""
        generating = self.generating_s
        return None if generating is None or self.completion_tokens < 2 else generating / (self.completion_tokens - 1)

    @property
    def tokens_per_second(self) -> float | None:
        """Of all tokens, from when the request was taken up."""
        running = _between(self.start.scheduled_at, self.last_output_at)
        return self.completion_tokens / running if running is not None and running > 0 else None


def _between(earlier: float | None, later: float | None) -> float | None:
    return None if earlier is None or later is None else later - earlier
