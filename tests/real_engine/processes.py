"""Programs that the checks start: what they said, how they ended, and what they left behind."""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import psutil

from tests.patience import PATIENCE_S

MARK = "NORTHBOUND_E2E_PROGRAM"
"""Environment variable by which a process is known to descend from a program, whoever its parent is by now."""

T = TypeVar("T")


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until the condition holds; False if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def settled(read: Callable[[], T], expected: T) -> T:
    """Poll until what is read is as expected; after PATIENCE_S, give what is read instead."""
    deadline = time.monotonic() + PATIENCE_S
    while (last := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.1)
    return last


class Program:
    """A started program and all that descends from it. Its output goes to a file."""

    def __init__(
        self, name: str, command: Sequence[str | Path], env: Mapping[str, str], log: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self.log = log
        self._mark = uuid.uuid4().hex
        self._known: set[psutil.Process] = set()
        with log.open("wb") as output:
            self._popen = subprocess.Popen(
                [str(part) for part in command],
                env={**os.environ, **env, MARK: self._mark},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=pass_fds,
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def exit_status(self) -> int | None:
        return self._popen.poll()

    def send(self, number: signal.Signals) -> None:
        """Signal the program itself, and note its descendants while they can still be found."""
        self._note_descendants()
        self._popen.send_signal(number)

    def wait(self) -> int:
        """Its exit status. Fails if it takes longer than PATIENCE_S."""
        try:
            return self._popen.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {PATIENCE_S} s\n{self.tail()}") from None

    def running(self) -> list[str]:
        """Command lines of the processes that run: itself, and all that ever descended from it as far as is known."""
        self._note_descendants()
        return [line for process in self._known if (line := _command_line(process))]

    def kill(self) -> None:
        """Take it down with all that descends from it, whatever state it is in."""
        self._note_descendants()
        for process in self._known:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._popen.wait()

    def tail(self, lines: int = 60) -> str:
        text = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join([f"--- last lines of {self.log}:", *text])

    def _note_descendants(self) -> None:
        # By ancestry, since a program that sets its title overwrites its environment; by the mark, since one whose
        # parent is gone has no ancestry.
        try:
            program = psutil.Process(self._popen.pid)
            self._known.update([program, *program.children(recursive=True)])
        except psutil.NoSuchProcess:
            pass
        self._known.update(
            process for process in psutil.process_iter() if _environment(process).get(MARK) == self._mark
        )


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError):
        return {}


def _command_line(process: psutil.Process) -> str:
    """Empty unless the process still runs; one that is dead and only not reaped yet does not."""
    try:
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            return " ".join(process.cmdline()) or process.name()
    except psutil.NoSuchProcess:
        pass
    return ""
