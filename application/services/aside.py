"""Work that takes so long that others would notice, done beside the event loop."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

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
    return work() if characters <= SHORT else await asyncio.to_thread(work)
