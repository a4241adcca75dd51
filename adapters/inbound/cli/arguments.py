"""From words to values, by argparse.

argparse keeps what it does not know in order, which is how flags reach the engine unread. What it cannot do is done to
the words before: underscores for dashes, `=true` and `=false` for switches, and values given key by key.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import msgspec

from adapters.inbound.cli.dotted import dashed, gathered
from adapters.inbound.cli.flags import Flag
from adapters.inbound.cli.kinds import OBJECT, SWITCH
from adapters.inbound.cli.lora_modules import LORA_MODULES
from adapters.inbound.cli.usage import UsageError
from adapters.inbound.cli.vllm_flags import VllmFlag

_ENGINE_FLAGS_THAT_BEGIN_ANOTHER = ("--watermark",)
_MOST_MEANT = 4
"""Flags that are named where a word is the beginning of many."""
_NARGS = {"values": "+", "a value or nothing": "?"}


class Arguments(argparse.ArgumentParser):
    """A parser whose complaints are UsageErrors, filled from the tables of flags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, argument_default=argparse.SUPPRESS, **options)
        self._negated: dict[str, str] = {}
        self._known = {"--help"}
        self._with_keys: set[str] = set()
        self._served: list[str] = []

    def error(self, message: str) -> NoReturn:
        raise UsageError(message.removeprefix("argument "))

    def add_flag(self, group: argparse._ArgumentGroup, flag: Flag, help: str) -> None:  # noqa: A002
        self._served += flag.spellings
        if flag.kind is SWITCH:
            self._add_switch(group, flag, help)
            return
        group.add_argument(
            *flag.spellings,
            dest=flag.key,
            metavar=flag.kind.metavar,
            type=_readable(flag.kind.read_text),
            nargs="+" if flag.many else None,
            action="extend" if flag.repeatable else "store",
            required=flag.required,
            help=help,
        )
        self._known.update(flag.spellings)
        if flag.kind in (OBJECT, LORA_MODULES):
            self._with_keys.update(flag.spellings)

    def add_vllm_flag(self, flag: VllmFlag) -> None:
        if flag.takes == "nothing":
            self._add_switch(self, flag, argparse.SUPPRESS)
            return
        self.add_argument(
            *flag.spellings,
            dest=flag.key,
            type=_plain,
            action="append" if flag.takes == "a value each time" else "store",
            nargs=_NARGS.get(flag.takes),
            const=True if flag.takes == "a value or nothing" else None,
            help=argparse.SUPPRESS,
        )
        self._known.update(flag.spellings)
        if flag.takes == "a value":
            self._with_keys.update(flag.spellings)

    def read(self, words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """The values given, by key, and the words that no known flag claims. Raises UsageError."""
        words = gathered(words, self._with_keys)
        values, rest = self.parse_known_args([self._spelled_out(word) for word in words])
        for word in rest:
            self._refuse_if_near(word)
        return vars(values), rest

    def _add_switch(self, group: argparse._ActionsContainer, flag: Flag | VllmFlag, help: str) -> None:  # noqa: A002
        group.add_argument(
            *flag.spellings, dest=flag.key, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS, help=help
        )
        positive, negative = f"--{flag.name}", f"--no-{flag.name}"
        self._negated |= {positive: negative, negative: positive}
        self._known.update(flag.spellings, (negative,))

    def _spelled_out(self, word: str) -> str:
        """The word as argparse knows it, or untouched if it is no known flag."""
        if not word.startswith("--"):
            return word
        name, equals, value = word.partition("=")
        name = dashed(name)
        if name not in self._known:
            return word
        if not equals or name not in self._negated:
            return name + equals + value
        try:
            return name if SWITCH.read_text(value) else self._negated[name]
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None

    def _refuse_if_near(self, word: str) -> None:
        """vLLM takes the beginning of a flag for the flag, so passing one on would hide it from this side."""
        name = dashed(word.partition("=")[0])
        if not name.startswith("--") or name in _ENGINE_FLAGS_THAT_BEGIN_ANOTHER:
            return
        base, dot, _ = name.partition(".")
        if dot and base in self._known:
            raise UsageError(f"{name}: {base} has no keys")
        longer = (known for known in self._known if known.startswith(base) and known != base)
        if near := sorted(longer, key=lambda known: (len(known), known)):
            raise UsageError(f"{base}: not a flag; did you mean {' or '.join(near[:_MOST_MEANT])}?")

    def perhaps(self, word: str) -> str:
        """A question, if a word that is no flag reads like one that has a setting."""
        near = get_close_matches(dashed(word.partition("=")[0]), self._served, n=1, cutoff=0.8)
        return f"; did you mean {near[0]}?" if near else ""


def engine_words(flag: Flag | VllmFlag, value: Any) -> Iterable[str]:
    """How an engine is given the value."""
    if value is None or value is False:
        return ()
    if value is True:
        return (f"--{flag.name}",)
    return (f"--{flag.name}", value if isinstance(value, str) else msgspec.json.encode(value).decode())


def _plain(text: str) -> Any:
    """The value of a flag that is only compared with what asks for nothing."""
    if text in ("", "None"):
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _readable(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def read_word(word: str) -> Any:
        try:
            return read(word)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read_word
