"""Counts under vLLM's names, so that its dashboards read them."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from application.ports.metrics import Metrics
from domain.generation import TokenUsage


class PrometheusMetrics(Metrics):
    """Counters in a registry of their own."""

    def __init__(self, model_name: str) -> None:
        self._registry = CollectorRegistry()
        labels = {"model_name": model_name, "engine": "0"}
        names = list(labels)
        self._running = Gauge(
            "vllm:num_requests_running",
            "Requests that the engine admitted and that have not ended.",
            names,
            registry=self._registry,
        ).labels(**labels)
        ended = Counter(
            "vllm:request_success",
            "Requests that ended, by the reason they ended for.",
            [*names, "finished_reason"],
            registry=self._registry,
        )
        self._ended = {
            reason: ended.labels(**labels, finished_reason=reason)
            for reason in ("stop", "length", "abort", "error", "repetition")
        }
        self._prompt_tokens = Counter(
            "vllm:prompt_tokens", "Prompt tokens of requests that ended.", names, registry=self._registry
        ).labels(**labels)
        self._generation_tokens = Counter(
            "vllm:generation_tokens", "Tokens generated for requests that ended.", names, registry=self._registry
        ).labels(**labels)

    def request_started(self) -> None:
        self._running.inc()

    def request_ended(self, reason: str, usage: TokenUsage) -> None:
        self._running.dec()
        self._ended[reason].inc()
        self._prompt_tokens.inc(usage.prompt_tokens)
        self._generation_tokens.inc(usage.completion_tokens)

    def expose(self) -> bytes:
        return generate_latest(self._registry)
