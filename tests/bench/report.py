"""What was measured, as a table and as JSON."""

import os
import platform
from typing import Any, Final

from msgspec import Struct

from tests.bench.frontends import Frontend
from tests.bench.measure import Run, medians

COLUMNS: Final = {
    "tokens_per_s": ("tokens/s", 0),
    "cpu_us_per_token": ("CPU us/token", 1),
    "ttft_ms_p50": ("TTFT p50 ms", 1),
    "ttft_ms_p99": ("TTFT p99 ms", 1),
    "itl_ms_p50": ("ITL p50 ms", 1),
    "itl_ms_p99": ("ITL p99 ms", 1),
    "failures": ("failures", 0),
    "engine_busy": ("engine busy", 2),
    "longest_hold_ms": ("hold ms", 1),
}
"""Heading and digits behind the point."""


class Started(Struct, frozen=True, kw_only=True):
    """A frontend before its first request."""

    health_s: float
    rss_mb: float
    pss_mb: float


def started(frontend: Frontend) -> Started:
    rss_mb, pss_mb = frontend.memory_mb()
    return Started(health_s=frontend.health_s, rss_mb=rss_mb, pss_mb=pss_mb)


class Report:
    """Grows run by run. Ratios are this tree's CPU per token to each peer's."""

    def __init__(self, ours: str, settings: dict[str, Any]) -> None:
        self._ours = ours
        self._settings = settings
        self._started: dict[str, Started] = {}
        self._runs: dict[str, dict[str, list[Run]]] = {}

    def add_start(self, frontend: str, figures: Started) -> None:
        self._started[frontend] = figures

    def add_run(self, workload: str, frontend: str, run: Run) -> None:
        self._runs.setdefault(workload, {}).setdefault(frontend, []).append(run)

    def as_json(self) -> dict[str, Any]:
        return {
            "machine": {
                "processors": os.cpu_count(),
                "system": platform.platform(),
                "python": platform.python_version(),
            },
            "settings": self._settings,
            "idle": self._started,
            "workloads": {
                workload: {
                    frontend: {
                        "medians": medians(runs),
                        "cpu_ratio_of_ours": self._ratio(workload, frontend),
                        "runs": runs,
                    }
                    for frontend, runs in frontends.items()
                }
                for workload, frontends in self._runs.items()
            },
        }

    def as_text(self) -> str:
        lines = [_row("idle", "frontend", ["/health s", "RSS MB", "PSS MB"])]
        for frontend, idle in self._started.items():
            lines.append(_row("", frontend, [f"{idle.health_s:.2f}", f"{idle.rss_mb:.0f}", f"{idle.pss_mb:.0f}"]))
        headings = [heading for heading, _ in COLUMNS.values()]
        lines += ["", _row("workload", "frontend", [*headings, "ours : it"])]
        for workload, frontends in self._runs.items():
            for frontend, runs in frontends.items():
                middle = medians(runs)
                cells = [_cell(middle[figure], digits) for figure, (_, digits) in COLUMNS.items()]
                lines.append(_row(workload, frontend, [*cells, _cell(self._ratio(workload, frontend), 2)]))
        return "\n".join(lines)

    def _ratio(self, workload: str, frontend: str) -> float | None:
        ours, its = (medians(self._runs[workload][name])["cpu_us_per_token"] for name in (self._ours, frontend))
        return ours / its if ours and its else None


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _row(first: str, second: str, cells: list[str]) -> str:
    return f"{first:22}{second:12}" + "".join(f"{cell:>13}" for cell in cells)
