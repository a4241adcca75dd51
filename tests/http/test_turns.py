"""Requests that come all at once begin a few at a time, so that streams go on between them."""

import asyncio
from collections import Counter

from litestar.types import Receive, Scope, Send

from adapters.inbound.http.turns import MOST_BEGUN, InTurns
from tests.http.exchange import Exchange
from tests.patience import PATIENCE_S


class Begun:
    """An app that notes in which turn of the loop each request began, by its path."""

    def __init__(self) -> None:
        self.turns: dict[str, int] = {}
        self._turn = 0
        asyncio.get_running_loop().call_soon(self._next)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.turns[scope["path"]] = self._turn

    def _next(self) -> None:
        self._turn += 1
        asyncio.get_running_loop().call_soon(self._next)


async def test_many_begin_in_order_over_some_turns() -> None:
    begun = Begun()
    app = InTurns(begun)
    count = 10 * MOST_BEGUN + 1
    exchanges = [Exchange(app, f"/{index}", b"") for index in range(count)]
    await asyncio.gather(*(exchange.served for exchange in exchanges))

    assert list(begun.turns) == [f"/{index}" for index in range(count)]
    # where one turn ends and the next begins, the clock here and the app do not agree to one callback
    assert max(Counter(begun.turns.values()).values()) <= 2 * MOST_BEGUN
    assert len(set(begun.turns.values())) >= 10


async def test_a_few_begin_at_once() -> None:
    begun = Begun()
    app = InTurns(begun)
    for _ in range(3):
        exchanges = [Exchange(app, f"/{index}", b"") for index in range(MOST_BEGUN)]
        await asyncio.sleep(0)
        assert len(begun.turns) == MOST_BEGUN
        begun.turns.clear()
        await asyncio.gather(*(exchange.served for exchange in exchanges))
        await asyncio.sleep(0)


async def test_who_leaves_while_it_waits_takes_no_turn() -> None:
    begun = Begun()
    app = InTurns(begun)
    exchanges = [Exchange(app, f"/{index}", b"") for index in range(4 * MOST_BEGUN)]
    await asyncio.sleep(0)
    for exchange in exchanges[MOST_BEGUN:-1]:
        exchange.served.cancel()
    ended = asyncio.gather(*(exchange.served for exchange in exchanges), return_exceptions=True)
    await asyncio.wait_for(ended, PATIENCE_S)

    assert set(begun.turns) == {f"/{index}" for index in range(MOST_BEGUN)} | {f"/{4 * MOST_BEGUN - 1}"}
    exchange = Exchange(app, "/later", b"")
    await exchange.end()
    assert "/later" in begun.turns
