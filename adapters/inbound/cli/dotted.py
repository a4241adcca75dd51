"""A value given key by key: `--flag.key value`, `--flag.key.below=value`, and `--flag.key+ a,b` for a list's elements.

All as vLLM's parser takes it: a value is JSON, else a count such as 8k, else a string; keys add up, lists too, and
what is given so takes the place of what the flag was given as a whole.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from msgspec.json import decode

from adapters.inbound.cli.kinds import count
from adapters.inbound.cli.usage import UsageError


def dashed(name: str) -> str:
    """The flag as it is known: underscores for dashes, but not in keys."""
    base, dot, path = name.partition(".")
    return base.replace("_", "-") + dot + path


def gathered(words: Sequence[str], with_keys: Collection[str]) -> list[str]:
    """The words, and behind them each of the flags `with_keys` that was given by keys, as one JSON object.
    Raises UsageError."""
    rest: list[str] = []
    objects: dict[str, dict[str, Any]] = {}
    remaining = iter(words)
    for word in remaining:
        name, equals, text = word.partition("=")
        flag, *path = dashed(name).split(".")
        if not path or flag not in with_keys:
            rest.append(word)
            continue
        if not equals:
            following = next(remaining, None)
            if following is None:
                raise UsageError(f"{dashed(name)}: expected one argument")
            text = following
        value = text.split(",") if path[-1].endswith("+") else _value(text)
        put(objects.setdefault(flag, {}), [*path[:-1], path[-1].removesuffix("+")], value)
    return rest + [word for flag, value in objects.items() for word in (flag, json.dumps(value))]


def put(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Add a value to the tree, at a path of at least one key."""
    *parents, last = path
    for key in parents:
        below = tree.get(key)
        tree[key] = tree = below if isinstance(below, dict) else {}
    before = tree.get(last)
    if isinstance(before, list) and isinstance(value, list):
        tree[last] = before + value
    elif isinstance(before, dict) and isinstance(value, dict):
        for key, below in value.items():
            put(before, [key], below)
    else:
        tree[last] = value


def _value(text: str) -> Any:
    for read in (decode, count):
        try:
            return read(text)
        except (ValueError, RecursionError):
            continue
    return text
