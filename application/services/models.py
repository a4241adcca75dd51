"""Which models this server answers for."""

from collections.abc import Sequence

from msgspec import Struct

from application.ports.engine import EngineCore
from domain.errors import RequestError


class ModelNotFound(RequestError):
    """The request names a model that is not served here."""


class ModelCard(Struct, frozen=True):
    """One served model name."""

    id: str
    root: str
    """The path or name that the model was loaded from."""
    created: int
    """Unix seconds."""
    max_model_len: int


class ServedModels:
    """One model under one or more names; answers carry the first."""

    def __init__(self, names: Sequence[str], root: str, created: int, engine: EngineCore) -> None:
        self._names = names
        self._root = root
        self._created = created
        self._engine = engine

    def resolve(self, requested: str | None) -> str:
        """The name an answer carries. Absent or empty means the model there is; raises ModelNotFound."""
        if requested and requested not in self._names:
            known = ", ".join(self._names)
            raise ModelNotFound(f"The model `{requested[:100]}` does not exist. Valid names: {known}.", "model")
        return self._names[0]

    def cards(self) -> Sequence[ModelCard]:
        return [ModelCard(name, self._root, self._created, self._engine.max_model_len) for name in self._names]
