"""A reader that takes no more than what `Source.listen` promises lets it."""

import asyncio
from typing import Generic, TypeVar

from application.ports.source import Source
from domain.errors import EngineFailure
from tests.patience import PATIENCE_S

T = TypeVar("T")


class OneAtACall(Generic[T]):
    """Takes until None, then one item at each call; until None again after a call at which it was away or taking."""

    def __init__(self, source: Source[T]) -> None:
        self.taken: list[T] = []
        self.failure: Exception | None = None
        self.missed = asyncio.Event()
        """Whether it was called while it was away."""
        self._source = source
        self._is_away = False
        self._is_taking = False
        self._is_behind = True
        self._end = asyncio.Event()
        source.listen(self._take)
        self._take()

    def leave(self) -> None:
        self._is_away = True

    def come_back(self) -> None:
        self._is_away = False
        if self._is_behind:
            self._take()

    @property
    def has_ended(self) -> bool:
        return self._end.is_set()

    async def ended(self) -> list[T]:
        """All of it. Raises what it ended in, unless that was nothing but its end."""
        async with asyncio.timeout(PATIENCE_S):
            await self._end.wait()
        if self.failure is not None:
            raise self.failure
        return self.taken

    def left(self) -> list[T | None]:
        """What is there, though nobody was told; None for an end."""
        left: list[T | None] = []
        if not self.has_ended:
            try:
                while (item := self._source.take()) is not None:
                    left.append(item)
            except (StopAsyncIteration, EngineFailure):
                left.append(None)
        return left

    def _take(self) -> None:
        if self._is_away:
            self.missed.set()
        if self._is_away or self._is_taking:
            self._is_behind = True
            return
        self._is_taking = True
        try:
            while not self.has_ended:
                item = self._source.take()
                if item is not None:
                    self.taken.append(item)
                self._is_behind = self._is_behind and item is not None
                if not self._is_behind:
                    break
        except StopAsyncIteration:
            self._end.set()
        except EngineFailure as failure:
            self.failure = failure
            self._end.set()
        finally:
            self._is_taking = False
