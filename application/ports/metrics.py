"""Counting what the service does."""

from abc import abstractmethod
from typing import Protocol

from domain.generation import TokenUsage


class Metrics(Protocol):
    """Where requests are counted. Never fails, never waits."""

    @abstractmethod
    def request_started(self) -> None:
        """The engine admitted a request."""

    @abstractmethod
    def request_ended(self, reason: str, usage: TokenUsage) -> None:
        """It ended: in one of the finish reasons, `abort` where the client left, `error` where the engine failed.
        Called once for each request that started."""
