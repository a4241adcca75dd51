"""Work that takes so long that others would notice, done beside the event loop."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

SHORT = 1 << 14
"""Characters. So many are tokenised in a few milliseconds, which is less trouble than a thread."""

TOKEN = 2
"""Characters that a token is worth where it is read as text."""

CELL = 8
"""Characters that a score is worth where it is shown."""


async def aside(characters: int, work: Callable[[], T]) -> T:
    """What `work` on a text of that length, or on what takes as long, gives; long ones in a thread, which a
    cancellation does not stop."""
    return work() if characters <= SHORT else await asyncio.get_running_loop().run_in_executor(_SOME, work)


async def one_by_one(characters: int, work: Callable[[], T]) -> T:
    """The same for work that needs the interpreter all the time, as the event loop does: only one of all such is done
    at once, and the loop has every other turn."""
    return work() if characters <= SHORT else await begun_aside(work)


def begun_aside(work: Callable[[], T]) -> "asyncio.Future[T]":
    """What it will give: the same work, however long it takes."""
    return asyncio.get_running_loop().run_in_executor(_ONE, work)


_ONE: Final = ThreadPoolExecutor(1)
_SOME: Final = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2))
"""Were there more threads than processors, one could lose its own while it has the interpreter, and the loop wait."""
