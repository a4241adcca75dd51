"""`--args-json`: what `vllm serve` was given, in snake case, as it hands it to the frontend it starts."""

from typing import Any

from msgspec import DecodeError, json

from adapters.inbound.cli.command_flags import SERVE
from adapters.inbound.cli.dotted import put
from adapters.inbound.cli.flags import SHARED, Flag
from adapters.inbound.cli.usage import UsageError
from adapters.inbound.cli.vllm_flags import VLLM_FLAGS

_BUILT = {flag.key: flag for flag in SHARED}
_BUILT["model_tag"] = _BUILT["model"]
_VLLM = {flag.key: flag for flag in VLLM_FLAGS}
_OF_SERVE = {flag.key for flag in SERVE if flag.ours}


def read_args_json(text: str) -> dict[str, Any]:
    """What it settles, by key. Null is the same as absent; a key nobody here knows is the engine's, and dropped."""
    try:
        document = json.decode(text)
    except (DecodeError, UnicodeError) as error:
        raise UsageError(f"--args-json: not valid JSON: {error}") from None
    except RecursionError:
        raise UsageError("--args-json: nested too deeply") from None
    if not isinstance(document, dict):
        raise UsageError("--args-json: expected a JSON object")
    given: dict[str, Any] = {}
    for key, value in _whole(document).items():
        if value is None:
            continue
        if key in _BUILT:
            given[key] = _read(_BUILT[key], key, value)
        elif key in _OF_SERVE:
            raise UsageError(f"--args-json: {key} is a flag of `northbound serve` alone")
        elif key in _VLLM and not _VLLM[key].for_launcher:
            _VLLM[key].check(value, f"--args-json: {key}")
            given[key] = value
    return given


def _whole(document: dict[str, Any]) -> dict[str, Any]:
    """The document with values given key by key, as in `flag.key`, put together."""
    whole: dict[str, Any] = {}
    by_keys: dict[str, Any] = {}
    for name, value in document.items():
        key, *path = name.split(".")
        put(by_keys if path else whole, [key.replace("-", "_"), *path], value)
    return whole | by_keys


def _read(flag: Flag, key: str, value: Any) -> Any:
    try:
        if not flag.many:
            return flag.kind.read_json(value)
        return [flag.kind.read_json(one) for one in (value if isinstance(value, list) else [value])]
    except ValueError as error:
        raise UsageError(f"--args-json: {key}: {error}") from None
