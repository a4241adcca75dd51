"""Metrics that remember what they were told."""

from application.ports.metrics import Metrics
from domain.generation import TokenUsage


class RememberedMetrics(Metrics):
    """Every start and every end, in order."""

    def __init__(self) -> None:
        self.started = 0
        self.ended: list[tuple[str, TokenUsage]] = []

    def request_started(self) -> None:
        self.started += 1

    def request_ended(self, reason: str, usage: TokenUsage) -> None:
        if len(self.ended) == self.started:
            raise AssertionError(f"A request ended ({reason}) that never started, or ended twice.")
        self.ended.append((reason, usage))

    @property
    def reasons(self) -> list[str]:
        return [reason for reason, _ in self.ended]
