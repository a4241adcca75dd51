"""How adapters are named on the command line and in JSON."""

import json
from typing import Any

import msgspec

from adapters.inbound.cli.kinds import Kind
from adapters.inbound.cli.settings import LoraModule


def _from_text(text: str) -> Any:
    """Same as vLLM: an empty word and the word None name none. Unlike vLLM's, JSON may be a list."""
    if text in ("", "None"):
        return []
    if text[0] in "{[":
        return json.loads(text)
    name, _, path = text.partition("=")
    return {"name": name, "path": path}


def _modules(value: Any) -> tuple[LoraModule, ...]:
    return tuple(msgspec.convert(value if isinstance(value, list) else [value], list[LoraModule]))


def _are_modules(value: Any) -> bool:
    try:
        _modules(value)
    except msgspec.ValidationError:
        return False
    return True


LORA_MODULES = Kind(
    expected="NAME=PATH, or a JSON object with name, path and perhaps base_model_name",
    metavar="NAME=PATH",
    from_text=_from_text,
    accepts=_are_modules,
    text_in_json=True,
    kept_as=_modules,
)
"""One word may name several, or none."""
