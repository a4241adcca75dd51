"""`--config FILE`: flags from YAML, which those of the command line win over."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from adapters.inbound.cli.usage import UsageError


def with_config_file(words: Sequence[str]) -> list[str]:
    """The words after `serve`, with the file's flags in place of `--config FILE`: behind MODEL, before all others.
    Raises UsageError."""
    before, path, after = _split(list(words))
    if path is None:
        return before
    first = 1 if before and not before[0].startswith("-") else 0
    flags = _read(path)
    if first:
        flags.pop("model", None)  # same as vLLM: the one on the command line counts
    return [*before[:first], *_words(flags), *before[first:], *after]


def _split(words: list[str]) -> tuple[list[str], str | None, list[str]]:
    for at, word in enumerate(words):
        if word == "--config":
            if at + 1 == len(words):
                raise UsageError("--config: expected one argument")
            return words[:at], words[at + 1], words[at + 2 :]
        if word.startswith("--config="):
            return words[:at], word.removeprefix("--config="), words[at + 1 :]
    return words, None, []


def _read(path: str) -> dict[str, Any]:
    try:
        flags = yaml.safe_load(Path(path).read_bytes())
    except OSError as error:
        raise UsageError(f"--config: cannot read {path}: {error.strerror or error}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"--config: {path} is not YAML: {error}") from None
    if not isinstance(flags, dict) or not all(isinstance(name, str) for name in flags):
        raise UsageError(f"--config: expected flags and their values in {path}")
    return flags


def _words(flags: dict[str, Any]) -> Iterator[str]:
    for name, value in flags.items():
        match value:
            case bool():
                yield f"--{name}" if value else f"--no-{name}"
            case list():
                yield from (f"--{name}", *(_word(name, item) for item in value)) if value else ()
            case _:
                yield f"--{name}={_word(name, value)}"


def _word(name: str, value: Any) -> str:
    # Same as vLLM: null is the word None, which unsets what takes a string.
    try:
        return value if isinstance(value, str) else "None" if value is None else msgspec.json.encode(value).decode()
    except (TypeError, RecursionError):
        raise UsageError(f"--config: {name} has a value that JSON cannot hold") from None
