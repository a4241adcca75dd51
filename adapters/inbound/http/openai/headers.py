"""What request headers say of scheduling."""

from collections.abc import Mapping

from msgspec import Struct


class SchedulingHeaders(Struct, frozen=True, kw_only=True):
    """None is what they do not say."""

    session_id: str | None = None
    priority: int | None = None
    """Wins over the body's."""
    data_parallel_rank: int | None = None
    """Which engine is to answer, counted from 0."""


NO_HEADERS = SchedulingHeaders()


def scheduling_headers(headers: Mapping[str, str]) -> SchedulingHeaders:
    """Same as vLLM: where a number should be, what is none is as good as absent."""
    return SchedulingHeaders(
        session_id=headers.get("x-session-id") or None,
        priority=_number(headers.get("x-vllm-priority")),
        data_parallel_rank=_number(headers.get("x-data-parallel-rank")),
    )


def _number(text: str | None) -> int | None:
    """Within 64 bits: more than any is no different."""
    try:
        return None if text is None else max(-(2**63), min(int(text), 2**63 - 1))
    except ValueError:
        return None
