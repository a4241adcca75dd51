"""Northbound with a probe in its event loop: `python -m tests.bench.holds FILE serve …`. How long is it held at a time?

A timer is set again each time it comes. The time since then nobody else in the loop had: there was work that does not
give way, or a thread that kept the interpreter. Time for which the loop's thread lacked a processor does not count, nor
does any in which the whole process had none.
"""

import asyncio
import os
import sys
import threading
import time
import traceback
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

import uvloop

from adapters.bootstrap.__main__ import main

INTERVAL_S: Final = 0.001
NOTED_S: Final = 0.005
"""Shorter ones are not written down."""


class Probe:
    """Writes a line for each hold: milliseconds, and what ran when it had lasted a while, the innermost call first."""

    def __init__(self, file: Path) -> None:
        self._holds = file.open("a", buffering=1)
        self._thread = threading.get_ident()
        self._schedule = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        self._ticks = 0
        self._seen = ""

    def start(self) -> None:
        """In the loop's own thread."""
        self._loop = asyncio.get_running_loop()
        self._begin()
        threading.Thread(target=self._watch, daemon=True).start()

    def _begin(self) -> None:
        self._since, self._cpu = self._clock(), time.process_time()
        self._loop.call_later(INTERVAL_S, self._tick)

    def _tick(self) -> None:
        held = min(self._clock() - self._since, time.process_time() - self._cpu)
        if held >= NOTED_S:
            self._holds.write(f"{1000 * held:.1f} {self._seen}\n")
        self._seen = ""
        self._ticks += 1
        self._begin()

    def _clock(self) -> float:
        """Seconds, but for those in which the thread could run and had to wait for a processor, as Linux tells them."""
        return time.perf_counter() - int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9

    def _watch(self) -> None:
        """A look at the loop's stack whenever it is late."""
        last = 0
        while True:
            time.sleep(NOTED_S)
            if self._ticks == last and not self._seen and self._clock() - self._since > NOTED_S:
                stack = traceback.extract_stack(sys._current_frames()[self._thread])
                self._seen = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(stack[-6:]))
            last = self._ticks


def watched(serving: Coroutine[Any, Any, int], run: Any = uvloop.run) -> int:
    """In place of `uvloop.run`."""

    async def serve() -> int:
        Probe(file).start()
        return await serving

    status: int = run(serve())
    return status


if __name__ == "__main__":
    file = Path(sys.argv.pop(1))
    file.touch()
    uvloop.run = watched
    sys.exit(main())
