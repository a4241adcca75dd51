"""A conversation."""

from collections.abc import Sequence

from msgspec import Struct


class Message(Struct, frozen=True):
    """One turn. Its content is text, or text in parts where the caller sent parts."""

    role: str
    content: str | Sequence[str]
    name: str | None = None
    """Who speaks, where several have the same role; templates may use it."""
