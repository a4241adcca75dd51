"""What handlers are given by the composition root."""

from typing import Annotated, TypeVar

from litestar.params import Dependency

T = TypeVar("T")

Injected = Annotated[T, Dependency(skip_validation=True)]
"""A port: Litestar cannot check a protocol at run time, and mypy has done so."""
