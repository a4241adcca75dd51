"""What comes over time, for one reader."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Protocol, Self, TypeVar

T_co = TypeVar("T_co", covariant=True)

OnReady = Callable[[], None]
"""Called in the event loop. Must not raise, and may be called in the midst of `take`."""


class Source(Protocol[T_co]):
    """Items, one after the other. A reader that must not lose time takes them as it is told that they are there, with
    no task in between; any other just iterates."""

    @abstractmethod
    def take(self) -> T_co | None:
        """The next item, or None when it has yet to come. Raises what ends it: StopAsyncIteration, or a failure."""

    @abstractmethod
    def listen(self, on_ready: OnReady) -> None:
        """From now on call this, and nothing else, for each item that comes and for the end. It is not called for what
        is there already.

        So whoever took until None, and since then once at each call, has taken all there is. Not so if it did not take
        at a call, or was called in the midst of `take`: then there may be more, until None again."""

    @abstractmethod
    def close(self) -> None:
        """Nothing more is wanted, which ends it for whoever reads. May be called again.

        It forgets who listens: a listener mostly holds its source, and only a collection of garbage finds a ring."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T_co:
        while (item := self.take()) is None:
            await self.arrival()
        return item

    async def arrival(self) -> None:
        """Wait until there may be something to take, after there was nothing. Listens."""
        ready = asyncio.get_running_loop().create_future()
        self.listen(partial(_settle, ready))
        await ready

    async def aclose(self) -> None:
        self.close()


def nobody() -> None:
    """Listens to a source that nobody listens to."""


def _settle(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
