"""Which models this server answers for, adapters among them."""

import hashlib
from collections.abc import Sequence

from msgspec import Struct

from application.options import ServerOptions
from application.ports.engine import EngineCore
from application.services.lora import LoraAdapters
from domain.errors import RequestError
from domain.lora import LoraAdapter


class ModelNotFound(RequestError):
    """The request names a model that is not served here."""


class ServedModel(Struct, frozen=True):
    """What answers a request."""

    name: str
    """As the answer carries it."""
    adapter: LoraAdapter | None = None
    """What is added to the model."""


class ModelCard(Struct, frozen=True):
    """One name that requests may use."""

    id: str
    root: str
    """The path or name that it was loaded from."""
    created: int
    """Unix seconds."""
    max_model_len: int | None = None
    """None for an adapter: its model's."""
    parent: str | None = None
    """The name of an adapter's model."""


class ServedModels:
    """One model under one or more names, of which answers carry the first, and its adapters under theirs."""

    def __init__(
        self,
        names: Sequence[str],
        root: str,
        created: int,
        engine: EngineCore,
        options: ServerOptions,
        adapters: LoraAdapters,
    ) -> None:
        self._names = names
        self._root = root
        self._created = created
        self._engine = engine
        self._adapters = adapters
        self.fingerprint = _fingerprint(names, root, engine, options)
        """What answers say of the server that gave them; None: nothing."""

    def resolve(self, requested: str | None) -> ServedModel:
        """Absent or empty means the model there is; raises ModelNotFound."""
        adapter = self._adapters.get(requested)
        if adapter is not None:
            return ServedModel(adapter.name, adapter)
        if requested and requested not in self._names:
            known = ", ".join([*self._names, *(adapter.name for adapter in self._adapters.loaded)])
            raise ModelNotFound(f"The model `{requested[:100]}` does not exist. Valid names: {known}.", "model")
        return ServedModel(self._names[0])

    def cards(self) -> Sequence[ModelCard]:
        models = [ModelCard(name, self._root, self._created, self._engine.max_model_len) for name in self._names]
        adapters = [
            ModelCard(adapter.name, adapter.path, self._created, parent=adapter.base_model_name or self._names[0])
            for adapter in self._adapters.loaded
        ]
        return models + adapters


def _fingerprint(names: Sequence[str], root: str, engine: EngineCore, options: ServerOptions) -> str | None:
    """Of vLLM's form. Its hash stands for what is served, as far as it is known here, and outlives a restart."""
    if options.fingerprint_mode == "none":
        return None
    if options.fingerprint_mode == "custom":
        return options.fingerprint_value
    known = (engine.version, str(engine.max_model_len), root, *names)
    digest = hashlib.sha256("\0".join(known).encode()).hexdigest()
    return f"vllm-{engine.version}-{digest[:8]}"
