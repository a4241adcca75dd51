"""Runs a command, and takes it down with everything it started once standard input ends.

    guard.py GRACE COMMAND [ARGUMENT...]

Whoever starts the guard holds the other end of its standard input, and so ends the command by closing it or by ending
in any way, killed hard included. What is taken down has GRACE seconds from SIGTERM to SIGKILL, or almost none if
anything was written first. The guard exits as the command did: with its code, or with 128 and the number of the
signal that ended it.

Only the standard library, and nothing of this package: it is run as a file. Linux only, as vLLM is.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

HURRIED_GRACE = 0.3

GIVE_UP_AFTER = 5.0
"""Seconds for the kernel to end what was killed."""


def main(grace: float, command: list[str]) -> int:
    """Run the command to its end, or to the end of standard input."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # what loses its parent becomes ours, and can be found
    child_event, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    try:
        child = subprocess.Popen(  # noqa: S603 (whatever the operator names is run)
            command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=partial(die_with, os.getpid())
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        return 127
    code: int | None = None
    while code is None:
        readable, _, _ = select.select([sys.stdin.fileno(), child_event], [], [])
        if child_event in readable and set(os.read(child_event, 512)) & {signal.SIGTERM, signal.SIGINT}:
            break
        if sys.stdin.fileno() in readable:
            if not os.read(sys.stdin.fileno(), 512):
                break
            grace = min(grace, HURRIED_GRACE)
        code = reap(child.pid)
    taken = take_down(child.pid, grace, child_event)
    return code if code is not None else taken if taken is not None else 0


def take_down(child: int, grace: float, child_event: int) -> int | None:
    """End all descendants; the exit code of `child` if it was still there."""
    code: int | None = None
    told: set[int] = set()
    deadline = time.monotonic() + grace
    while remaining := set(descendants(os.getpid())):
        if time.monotonic() >= deadline + GIVE_UP_AFTER:
            break
        if time.monotonic() >= deadline:
            send(remaining, signal.SIGKILL)
        else:
            send(remaining - told, signal.SIGTERM)
            told |= remaining
        if select.select([child_event], [], [], 0.05)[0]:
            os.read(child_event, 512)
        reaped = reap(child)
        code = code if reaped is None else reaped
    return code


def reap(child: int) -> int | None:
    """Collect whatever has exited; the exit code of `child` if that was among it."""
    code: int | None = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                exit_code = os.waitstatus_to_exitcode(status)
                code = exit_code if exit_code >= 0 else 128 - exit_code
    return code


def descendants(ancestor: int) -> Iterator[int]:
    """All processes below that one, zombies too."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # the name of a command may hold spaces and parentheses: PID (NAME) STATE PARENT ...
                parent = int((entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    waiting = children.get(ancestor, [])
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting += children.get(pid, [])


def send(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def die_with(guard: int) -> None:
    """In the child: should the guard itself be killed, be told to end."""
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != guard:
        os._exit(1)  # it was killed before


def prctl(option: int, value: int) -> None:
    LIBC.prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
