"""One request that is asked of both frontends."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


class Kind(StrEnum):
    """What a case shows of its field."""

    DEFAULT = "default"
    """Its default, said."""
    NULL = "null"
    EDGE = "edge"
    """A value that has a meaning."""
    ERROR = "error"
    """A value of the right type that has none."""
    WRONG_TYPE = "wrong type"
    COMBINED = "combined"
    """With other fields."""


class Case(NamedTuple):
    name: str
    path: str
    body: Mapping[str, Any]
    fields: tuple[str, ...]
    """What it is about; the first above all."""
    kind: Kind
    server: str = "plain"
    """Which of the servers is asked."""
    headers: Mapping[str, str] = {}
    meant: Mapping[str, Any] | None = None
    """Its body with a value of the right type, if that in `body` could be taken for one."""

    @property
    def is_chat(self) -> bool:
        return self.path == CHAT

    @property
    def streams(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def field(self) -> str:
        """What it is about above all; "" if nothing is said."""
        return self.fields[0] if self.fields else ""

    def streamed(self) -> "Case":
        return self._replace(name=f"{self.name} streamed", body={**self.body, "stream": True})
