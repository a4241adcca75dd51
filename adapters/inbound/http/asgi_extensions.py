"""What our own server tells the application of a request beyond what every server does: in the scope's extensions."""

from typing import Any

from litestar.types import Scope

_PART = "part"


def extend(scope: Scope, name: str, part: object) -> None:
    """Other extensions stay."""
    scope["extensions"] = {**(scope.get("extensions") or {}), name: {_PART: part}}


def extension_of(scope: Scope, name: str) -> Any:
    """None where the server knows no such thing."""
    extension = (scope.get("extensions") or {}).get(name)
    return extension[_PART] if extension else None
