"""Clients that leave before their answer is over."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar, cast

from litestar.types import Receive, Scope

from adapters.inbound.http.asgi_extensions import extend, extension_of
from adapters.inbound.http.errors import ClientGone

T = TypeVar("T")

OnGone = Callable[[], None]


class Departure(Protocol):
    """The client's leaving, of an exchange whose request has been read."""

    def listen(self, on_gone: OnGone) -> None:
        """Call this when the client leaves, or soon if it has left already."""

    def forget(self) -> None:
        """Call nobody any more."""


class ReceivedDeparture(Departure):
    """As every server tells it: to a task that waits for it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive

    def listen(self, on_gone: OnGone) -> None:
        self._waiting = asyncio.ensure_future(self._wait(on_gone))

    def forget(self) -> None:
        self._waiting.cancel()

    async def _wait(self, on_gone: OnGone) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        on_gone()


_DEPARTURE = "northbound.departure"


def with_departure(scope: Scope, departure: Departure) -> None:
    """The server's word that it tells of the client's leaving without being waited for."""
    extend(scope, _DEPARTURE, departure)


def departure_of(scope: Scope, receive: Receive) -> Departure:
    return cast("Departure | None", extension_of(scope, _DEPARTURE)) or ReceivedDeparture(receive)


async def unless_gone(departure: Departure, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled when the client leaves: then ClientGone is raised.

    `work` runs in the caller's task: were it a task of its own, a cancellation of the caller could come between its
    result and whoever is to close that.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - it is running
    cancelled_before, gone = task.cancelling(), False

    def leave() -> None:
        nonlocal gone
        gone = task.cancel()

    departure.listen(leave)
    try:
        return await work
    except asyncio.CancelledError:
        if gone and task.cancelling() == cancelled_before + 1:
            raise ClientGone("The client closed the connection.") from None
        raise
    finally:
        departure.forget()
        if gone:
            task.uncancel()
