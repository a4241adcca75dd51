"""What an engine core answers to calls about LoRA adapters. Nothing of an adapter is read."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from adapters.outbound.vllm_engine.wire import EngineLora
from domain.lora import LoraAdapter


class CallFailed(Exception):
    """What the engine's method raises."""


class EmulatedLora:
    """The adapters that were loaded, by id."""

    def __init__(self) -> None:
        self._loaded: set[int] = set()
        self.calls: Mapping[str, Callable[..., Any]] = {
            "add_lora": self._add,
            "list_loras": lambda: sorted(self._loaded),
            "pin_lora": self._pin,
            "remove_lora": self._remove,
        }
        """By method. Raise CallFailed, or TypeError for other arguments."""

    def _add(self, fields: Sequence[Any]) -> bool:
        adapter = msgspec.convert(fields, EngineLora)
        if adapter.load_inplace or adapter.lora_int_id not in self._loaded:
            if not os.path.exists(adapter.lora_path):
                raise CallFailed(f"Loading lora {adapter.lora_name} failed: No adapter found for {adapter.lora_path}")
            self._loaded.add(adapter.lora_int_id)
        return True

    def _pin(self, adapter_id: int) -> bool:
        if adapter_id not in self._loaded:
            raise CallFailed(f"Adapter {adapter_id} is not loaded")
        return True

    def _remove(self, adapter_id: int) -> bool:
        was_loaded = adapter_id in self._loaded
        self._loaded.discard(adapter_id)
        return was_loaded


def adapter_of(lora: EngineLora | None) -> LoraAdapter | None:
    """The adapter that a request comes with."""
    if lora is None:
        return None
    return LoraAdapter(
        name=lora.lora_name,
        id=lora.lora_int_id,
        path=lora.lora_path,
        base_model_name=lora.base_model_name,
        is_3d=lora.is_3d_lora_weight,
    )
