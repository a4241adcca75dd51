"""What handlers are given by the composition root."""

from typing import TypeVar

from litestar.di import NamedDependency
from litestar.params import SkipValidation

T = TypeVar("T")

Injected = NamedDependency[SkipValidation[T]]
"""By the parameter's name. Litestar checks no types here: it cannot check a protocol at run time, and mypy has."""
