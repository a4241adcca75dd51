"""Clients that leave, as uvicorn's connections notice it."""

import asyncio

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from adapters.inbound.http.departure import Departure, OnGone


class CycleDeparture(Departure):
    """Of one request and its response. Whoever has the connection tells when it is lost."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle
        self._on_gone: OnGone | None = None

    def listen(self, on_gone: OnGone) -> None:
        self._on_gone = on_gone
        self._cycle.flow.resume_reading()  # uvicorn stops behind a large body, and would notice nothing
        if self._cycle.disconnected:
            asyncio.get_running_loop().call_soon(self.tell)

    def forget(self) -> None:
        self._on_gone = None

    def tell(self) -> None:
        if self._on_gone is not None:
            self._on_gone()
