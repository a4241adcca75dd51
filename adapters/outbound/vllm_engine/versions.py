"""Which engine cores this frontend speaks to."""

import re
from collections.abc import Sequence

SPOKEN = ("0.32", "0.33")
"""Releases whose wire is known: they differ only in what was appended."""


def is_spoken(version: str, allowed: Sequence[str] = ()) -> bool:
    """Whether an engine of that version is taken, which may be a release, a candidate or a build of one. `allowed` is
    what the operator takes beside it: whole versions, or releases such as `0.34`."""
    return any(_is_of(version, release) for release in (*SPOKEN, *allowed))


def _is_of(version: str, release: str) -> bool:
    return re.match(re.escape(release) + r"(?![0-9])", version) is not None
