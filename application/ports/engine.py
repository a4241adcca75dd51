"""Generating tokens."""

from abc import abstractmethod
from typing import Protocol

from application.ports.source import Source
from domain.errors import EngineFailure, RequestError
from domain.generation import GenerationRequest, TokenDelta


class EngineUnavailable(EngineFailure):
    """The engine takes no request now; trying later may help."""


class EngineDead(EngineFailure):
    """The engine is gone and does not come back."""


class NoSuchEngine(RequestError):
    """The request names an engine by a rank that there is none of."""


def check_rank(rank: int | None, engines: int) -> None:
    """Whether one of so many engines has the rank. Raises NoSuchEngine."""
    if rank is not None and not 0 <= rank < engines:
        raise NoSuchEngine(f"data_parallel_rank must be in [0, {engines}), got {rank}.", "data_parallel_rank")


class TokenStream(Source[TokenDelta], Protocol):
    """The output of one admitted request. Whoever receives it closes it, from the task that reads it or another.

    It gives deltas in the order of engine steps: at least one, the last and only the last of which has a finish
    reason. When the engine fails or is closed meanwhile, it ends in an EngineFailure; when the engine refuses the
    request, in a RequestError. Deltas that were produced and not yet read may come merged into one.
    """

    @abstractmethod
    def close(self) -> None:
        """Abort the request unless it has ended: exactly one abort reaches the engine. May be called again, and
        ends it for whoever waits for the next delta."""


class EngineCore(Protocol):
    """Generates tokens for many requests at once."""

    @property
    @abstractmethod
    def max_model_len(self) -> int:
        """The most tokens, prompt and output, that one request may have."""

    @property
    @abstractmethod
    def version(self) -> str:
        """Which engine this is, as it says of itself."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """False once it died. It does not come back."""

    @abstractmethod
    async def submit(self, request: GenerationRequest) -> TokenStream:
        """Admit the request. Raises EngineUnavailable if it cannot be taken now, EngineDead if it never will be, and
        RequestError for what this engine does not do: NoSuchEngine where no engine has the rank.

        Several requests may have the same request id."""

    @abstractmethod
    async def aclose(self) -> None:
        """Let go of everything held; running streams end in an EngineFailure. May be called again."""
