"""Loading LoRA adapters into the engine."""

from abc import abstractmethod
from typing import Protocol

from domain.errors import EngineFailure, RequestError
from domain.lora import LoraAdapter


class AdapterNotFound(RequestError):
    """There is no such adapter."""


class AdapterNotLoaded(EngineFailure):
    """An engine cannot load the adapter. The message is what it says."""


class LoraLoader(Protocol):
    """Where the adapters are that requests are generated with."""

    @abstractmethod
    async def load_adapter(self, adapter: LoraAdapter, *, in_place: bool = False) -> None:
        """Have every engine load it; from then on requests may bring it. One that is loaded under its id stays, unless
        `in_place` says that this one takes its place.

        Raises AdapterNotFound, with `param` lora_path, if nothing is at its path, AdapterNotLoaded if an engine cannot
        load it, and another EngineFailure if the engine is gone, or goes or is closed meanwhile."""
