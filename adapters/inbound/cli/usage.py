"""What is wrong with a command line, and how it is told."""

from typing import Final

LONGEST: Final = 500
"""Characters of a complaint."""


class UsageError(Exception):
    """The command cannot be followed. The message is one line for whoever typed it, and names the flag."""


def complaint(problem: Exception) -> str:
    """What a command prints of what keeps it from starting: one line, and no long one."""
    said = " ".join(str(problem).split())
    return f"northbound: error: {said if len(said) <= LONGEST else said[:LONGEST] + '…'}\n"
