"""Loads frontends in turns, so that what else the machine does meanwhile meets them all alike."""

import asyncio
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, structs

from tests.bench import load
from tests.bench.frontends import Frontend
from tests.bench.load import Load
from tests.bench.workloads import Workload

Client = Callable[[str, Workload, int], Load]
"""Puts load on the frontend at an address; the number makes the prompts other ones."""

WARM_UP = 8
"""Requests, and tokens of each, that go before and are not counted."""


class Run(Struct, frozen=True, kw_only=True):
    """One workload at one frontend, once. What is None could not be measured, for lack of answers."""

    tokens_per_s: float
    cpu_us_per_token: float | None
    """Of the frontend, user and system."""
    ttft_ms_p50: float | None
    ttft_ms_p99: float | None
    itl_ms_p50: float | None
    itl_ms_p99: float | None
    failures: int
    tokens: int
    engine_busy: float
    """Part of the time that the engine had a processor. Towards 1, the engine sets the pace."""
    longest_hold_ms: float | None
    """For so long nobody else had a turn in the frontend's event loop, if that is watched."""


def own_client(address: str, workload: Workload, seed: int) -> Load:
    return asyncio.run(load.put_load(address, workload, seed))


def measure(frontend: Frontend, workload: Workload, seed: int, client: Client) -> Run:
    few = min(WARM_UP, workload.streams)
    warm_up = structs.replace(workload, streams=few, requests=few, answer=WARM_UP, scored_prompt=0, long_prompt=0)
    own_client(frontend.address, warm_up, seed)
    # The only client that knows of requests beside the others.
    client = own_client if workload.scored_prompt or workload.long_prompt else client
    frontend.longest_hold_ms()
    cpu, engine_cpu = frontend.cpu_s(), frontend.engine_cpu_s()
    served = client(frontend.address, workload, seed)
    cpu, engine_cpu = frontend.cpu_s() - cpu, frontend.engine_cpu_s() - engine_cpu
    return Run(
        tokens_per_s=served.tokens / served.seconds,
        cpu_us_per_token=1e6 * cpu / served.tokens if served.tokens else None,
        ttft_ms_p50=served.ttft_ms_p50,
        ttft_ms_p99=served.ttft_ms_p99,
        itl_ms_p50=served.itl_ms_p50,
        itl_ms_p99=served.itl_ms_p99,
        failures=served.failures,
        tokens=served.tokens,
        engine_busy=engine_cpu / served.seconds,
        longest_hold_ms=frontend.longest_hold_ms(),
    )


def in_turns(
    frontends: Sequence[Frontend], asked: Mapping[str, Workload], repeats: int, client: Client
) -> Iterator[tuple[str, str, Run]]:
    """Names of workload and frontend, and what came of it; whoever was first comes last the next time."""
    for repeat in range(repeats):
        first = repeat % len(frontends)
        for name, workload in asked.items():
            for frontend in [*frontends[first:], *frontends[:first]]:
                yield name, frontend.name, measure(frontend, workload, repeat, client)


def medians(runs: Sequence[Run]) -> dict[str, float | None]:
    """Of each figure, over the runs that have it; failures are added up."""
    middle: dict[str, float | None] = {}
    for figure in Run.__struct_fields__:
        values = [value for run in runs if (value := getattr(run, figure)) is not None]
        middle[figure] = statistics.median(values) if values else None
    middle["failures"] = sum(run.failures for run in runs)
    return middle
