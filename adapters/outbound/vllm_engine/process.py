"""The engine as a child of ours, that does not outlive us."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from domain.errors import EngineFailure

GUARD = Path(__file__).with_name("guard.py")

GRACE = 5.0
"""Seconds that the engine's processes have to end by themselves. Same as vLLM, at least."""

HAS_VLLM = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"


class EngineNotStarted(EngineFailure):
    """The engine's process could not be started, or ended before it was ready."""


class EngineCommand(Struct, frozen=True, kw_only=True):
    """How vLLM is asked for an engine without a frontend."""

    python: str
    """The interpreter that has vLLM."""
    model: str
    arguments: Sequence[str] = ()
    """Whatever else `vllm serve` is to be told."""
    data_parallel_size: int = 1
    data_parallel_size_local: int | None = None
    """How many of these run on this machine; None: all."""

    @property
    def is_local(self) -> bool:
        """Whether all engines run on this machine."""
        return self.data_parallel_size_local in (None, self.data_parallel_size)

    def line(self, host: str, port: int) -> list[str]:
        """The command, for engines that say hello at that address."""
        local = [] if self.is_local else ["--data-parallel-size-local", str(self.data_parallel_size_local)]
        return [
            *(self.python, "-m", "vllm.entrypoints.cli.main", "serve", self.model, "--headless"),
            *("--data-parallel-address", host, "--data-parallel-rpc-port", str(port)),
            *("--data-parallel-size", str(self.data_parallel_size), *local, *self.arguments),
        ]


class EngineProcess:
    """A command under a guard, which ends it with us however we end. Its output is ours."""

    def __init__(self, line: Sequence[str], grace: float = GRACE) -> None:
        self._line = line
        self._grace = grace
        self._guard: asyncio.subprocess.Process | None = None
        self._lifeline: int | None = None

    async def start(self) -> None:
        read_end, self._lifeline = os.pipe()
        try:
            self._guard = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", str(GUARD), str(self._grace), *self._line),
                stdin=read_end,
                start_new_session=True,  # Ctrl-C at our terminal is for us; the engine ends when we are done with it
            )
        except BaseException:
            self._cut()
            raise
        finally:
            os.close(read_end)

    async def wait(self) -> int:
        """Its exit code, once it and everything it started is gone; 128 and more for the signal that ended it."""
        if self._guard is None:
            raise RuntimeError("the process was not started")
        return await self._guard.wait()

    async def stop(self, *, in_a_hurry: bool = False) -> None:
        """End it and everything it started, politely first. May be called again, and if it never started.

        It is taken down all the same when this is cancelled."""
        if in_a_hurry and self._lifeline is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._lifeline, b"!")
        self._cut()
        if self._guard is not None:
            await self._guard.wait()

    def _cut(self) -> None:
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None


async def check_interpreter(python: str) -> None:
    """Raise EngineNotStarted unless that interpreter runs and has vLLM."""
    try:
        probe = await asyncio.create_subprocess_exec(python, "-c", HAS_VLLM, stdin=asyncio.subprocess.DEVNULL)
    except OSError as error:
        raise EngineNotStarted(f"--python: {python} cannot be run: {error.strerror}.") from error
    try:
        code = await probe.wait()
    except asyncio.CancelledError:
        probe.kill()
        await probe.wait()
        raise
    if code != 0:
        raise EngineNotStarted(
            f"The interpreter {python} has no vLLM. Install it there, which is what Northbound's extra `vllm` does, "
            "or name an interpreter that has it with --python."
        )
