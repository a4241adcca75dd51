"""Which LoRA adapters requests may name."""

import asyncio
from collections.abc import Sequence
from itertools import count
from weakref import WeakValueDictionary

from application.ports.lora import AdapterNotFound, LoraLoader
from domain.errors import RequestError
from domain.lora import LoraAdapter

LONGEST_NAME = 1024
"""Characters. Every answer of the adapter carries them."""


class AdapterRefused(RequestError):
    """An adapter cannot be loaded under that name."""


class LoraAdapters:
    """Adapters by name, as they were loaded. What concerns one name happens one after the other."""

    def __init__(self, loader: LoraLoader, model_names: Sequence[str]) -> None:
        self._loader = loader
        self._model_names = model_names
        self._loaded: dict[str, LoraAdapter] = {}
        self._ids = count(1)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def loaded(self) -> Sequence[LoraAdapter]:
        """In the order of their names' first loading."""
        return list(self._loaded.values())

    def get(self, name: str | None) -> LoraAdapter | None:
        """None where there is none of that name."""
        return None if name is None else self._loaded.get(name)

    async def load(
        self,
        name: str,
        path: str,
        *,
        base_model_name: str | None = None,
        is_3d: bool = False,
        in_place: bool = False,
    ) -> None:
        """Answer to `name` with the adapter at `path`, once every engine has it. Only `in_place` may it take the place
        of another. Raises AdapterRefused, and what the loader raises: then all is as it was."""
        _check_given("lora_name", name)
        _check_given("lora_path", path)
        if len(name) > LONGEST_NAME:
            message = f"lora_name must have at most {LONGEST_NAME} characters, got {len(name)}."
            raise AdapterRefused(message, "lora_name")
        if name in self._model_names:
            raise AdapterRefused(f"`{name[:100]}` is a name of the model itself.", "lora_name")
        async with self._lock(name):
            known = self._loaded.get(name)
            if known is not None and not in_place:
                message = f"The adapter `{name[:100]}` is loaded already; load_inplace replaces it."
                raise AdapterRefused(message, "lora_name")
            adapter = LoraAdapter(
                name=name,
                id=next(self._ids) if known is None else known.id,
                path=path,
                # Same as vLLM: a base that is not served here is as good as none.
                base_model_name=base_model_name if base_model_name in self._model_names else None,
                is_3d=is_3d,
            )
            await self._loader.load_adapter(adapter, in_place=in_place)
            self._loaded[name] = adapter

    async def unload(self, name: str) -> None:
        """Answer to `name` no more; a load of it under way is waited for. Raises AdapterNotFound, AdapterRefused.

        Same as vLLM: engines are not told. What runs goes on, and an engine that needs the room forgets the adapter.
        """
        _check_given("lora_name", name)
        async with self._lock(name):
            if self._loaded.pop(name, None) is None:
                raise AdapterNotFound(f"The adapter `{name[:100]}` does not exist.", "lora_name")

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())


def _check_given(field: str, value: str) -> None:
    if not value:
        raise AdapterRefused(f"{field} must not be empty.", field)
