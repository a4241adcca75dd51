"""Being told to stop, by a signal."""

import signal
from typing import NoReturn

STOPPING = (signal.SIGTERM, signal.SIGINT)


def leave_when_told() -> None:
    """From now on, and as long as there is nothing to stop, being told to is the end, with exit status 0."""
    for number in STOPPING:
        signal.signal(number, _leave)


def ignore_being_told() -> None:
    """For the time between the end of what was to stop and that of the process."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)
