"""From the values of flags to the settings that `serve` and `frontend` have in common."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar

from msgspec import Struct

from adapters.inbound.cli.flags import SHARED, Flag
from adapters.inbound.cli.settings import HandshakeSettings, HttpSettings, LoraSettings, ModelSettings
from adapters.inbound.cli.usage import UsageError

_Settings = TypeVar("_Settings", bound=Struct)


def fill(settings: type[_Settings], flags: Iterable[Flag], values: Mapping[str, Any], **others: Any) -> _Settings:
    """The settings that the flags fill, the rest by default. A flag unset with None leaves the default."""
    filled = {
        flag.setting: tuple(value) if flag.many else value
        for flag in flags
        if flag.setting in settings.__struct_fields__ and (value := values.get(flag.key)) is not None
    }
    return settings(**filled, **others)


def http_settings(values: Mapping[str, Any]) -> HttpSettings:
    return fill(HttpSettings, SHARED, values)


def handshake_settings(values: Mapping[str, Any]) -> HandshakeSettings:
    backend = values.get("structured_outputs_config", {}).get("backend", "auto")
    return fill(HandshakeSettings, SHARED, values, structured_outputs_backend=backend)


def lora_settings(values: Mapping[str, Any], *, allows_updating: bool) -> LoraSettings:
    modules = list(chain.from_iterable(values.get("lora_modules", ())))
    return fill(LoraSettings, SHARED, {**values, "lora_modules": modules}, allows_updating=allows_updating)


def model_settings(values: Mapping[str, Any], model: str | None, name: str) -> ModelSettings:
    """`name` is what the model is served as, if nothing else is said. Raises UsageError."""
    names = [name for name in values.get("served_model_name", ()) if name] or [name]
    if "messages" in (values.get("default_chat_template_kwargs") or {}):
        raise UsageError("--default-chat-template-kwargs: messages come with each request")
    given = {**values, "model": model, "served_model_name": names}
    if given.get("max_model_len") == -1:
        del given["max_model_len"]
    return fill(ModelSettings, SHARED, given)
