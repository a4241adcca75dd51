"""Which models this server answers for."""

import hashlib
from collections.abc import Sequence

from msgspec import Struct

from application.options import ServerOptions
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

    def __init__(
        self,
        names: Sequence[str],
        root: str,
        created: int,
        engine: EngineCore,
        options: ServerOptions,
    ) -> None:
        self._names = names
        self._root = root
        self._created = created
        self._engine = engine
        self.fingerprint = _fingerprint(names, root, engine, options)
        """What answers say of the server that gave them; None: nothing."""

    def resolve(self, requested: str | None) -> str:
        """The name an answer carries. Absent or empty means the model there is; raises ModelNotFound."""
        if requested and requested not in self._names:
            known = ", ".join(self._names)
            raise ModelNotFound(f"The model `{requested[:100]}` does not exist. Valid names: {known}.", "model")
        return self._names[0]

    def cards(self) -> Sequence[ModelCard]:
        return [ModelCard(name, self._root, self._created, self._engine.max_model_len) for name in self._names]


def _fingerprint(names: Sequence[str], root: str, engine: EngineCore, options: ServerOptions) -> str | None:
    """Of vLLM's form. Its hash stands for what is served, as far as it is known here, and outlives a restart."""
    if options.fingerprint_mode == "none":
        return None
    if options.fingerprint_mode == "custom":
        return options.fingerprint_value
    known = (engine.version, str(engine.max_model_len), root, *names)
    digest = hashlib.sha256("\0".join(known).encode()).hexdigest()
    return f"vllm-{engine.version}-{digest[:8]}"
