"""Random requests, each sent to a server that has seen all the others."""

import asyncio
import traceback
from collections import Counter
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.contract.engines import eventually
from tests.fuzz.checks import check
from tests.fuzz.requests import Sent, requests
from tests.fuzz.servers import Kind, Server, serving
from tests.http.exchange import Exchange
from tests.http.serving import JSON

DEADLINE_S = 30.0
"""For one request. One that takes so long hangs."""

SENT = "requests"
LEFT = "clients that left"


class Result(NamedTuple):
    """Of some requests."""

    counted: Counter[str]
    """By what came of them, and by the fields of those that were answered: `field of path`."""
    failure: str | None
    """The smallest request found that brings one about."""


def run(kind: Kind, number: int | str, examples: int) -> Result:
    """So many requests, other ones for each number."""
    counted: Counter[str] = Counter()
    last: list[Sent] = []
    with asyncio.Runner() as runner:
        open_server = serving(kind)
        server = runner.run(open_server.__aenter__())

        @seed(number)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(sent=requests())
        def each(sent: Sent) -> None:
            last[:] = [sent]
            runner.run(_exchange(server, sent, counted))

        try:
            each()
            runner.run(_nothing_is_left(server))
        except Exception as failure:
            return Result(counted, f"{kind}: {last}\n{told(failure)}")
        finally:
            runner.run(open_server.__aexit__(None, None, None))
    return Result(counted, None)


def told(failure: Exception) -> str:
    """What went wrong, and where; of what hypothesis found, what it says of it too."""
    return "".join(traceback.format_exception(failure)[-4:])


async def _exchange(server: Server, sent: Sent, counted: Counter[str]) -> None:
    exchange = Exchange(server.app, sent.path, sent.content, headers=JSON | sent.headers)
    if sent.leaves_after is not None:
        for _ in range(sent.leaves_after):
            await asyncio.sleep(0)
        exchange.leave()
    await asyncio.wait_for(exchange.served, DEADLINE_S)
    counted[SENT] += 1
    if exchange.complete:
        check(sent, exchange.response)
        counted[str(exchange.status)] += 1
        if exchange.status == 200:
            counted.update(f"{field} of {sent.path}" for field in sent.fields)
    else:
        assert sent.leaves_after is not None, "it broke off"
        assert exchange.status != 500
        counted[LEFT] += 1


async def _nothing_is_left(server: Server) -> None:
    await eventually(lambda: server.running() == 0)
