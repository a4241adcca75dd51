"""How the value of a flag is read, from a word of the command line and from JSON."""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct, json

_DECIMAL = re.compile(r"(\d+(?:\.\d+)?)([kmgt])")
_BINARY = re.compile(r"(\d+)([KMGT])")
_MULTIPLES = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

MOST_ENGINES = 2**16
"""Their ranks are two bytes on the wire."""


class Kind(Struct, frozen=True, kw_only=True):
    """One kind of value. Reading raises ValueError, saying what was expected."""

    expected: str
    metavar: str = ""
    from_text: Callable[[str], Any]
    accepts: Callable[[Any], bool]
    text_in_json: bool = False
    """Whether JSON gives it as a string, too."""
    is_secret: bool = False
    """Whether a value is never shown, not even to say what is wrong with it."""
    kept_as: Callable[[Any], Any] = lambda value: value
    """What becomes of a value that is accepted."""

    def read_text(self, text: str) -> Any:
        try:
            value = self.from_text(text)
        except (ValueError, RecursionError):
            raise self._unexpected(text) from None
        if not self.accepts(value):
            raise self._unexpected(text)
        return self.kept_as(value)

    def read_json(self, value: Any) -> Any:
        if self.text_in_json and isinstance(value, str):
            return self.read_text(value)
        if not self.accepts(value):
            raise self._unexpected(value)
        return self.kept_as(value)

    def _unexpected(self, value: Any) -> ValueError:
        return ValueError(f"expected {self.expected}" + ("" if self.is_secret else f", not {value!r}"))


def _optional_text(text: str) -> str | None:
    # Same as vLLM: an empty word and the word None unset a flag.
    return None if text in ("", "None") else text


def count(text: str) -> int:
    """Reads 8192, 8k (thousands), 8K (1024s), 1.5k. Same as vLLM: a fraction only of thousands. Raises ValueError."""
    text = text.strip()
    if match := _DECIMAL.fullmatch(text):
        return int(float(match[1]) * _MULTIPLES[match[2]])
    if match := _BINARY.fullmatch(text):
        return int(match[1]) * _MULTIPLES[match[2]]
    return int(text)


def _token_count(text: str) -> int:
    return -1 if text.lower() == "auto" else count(text)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def integer(at_least: int, at_most: int | None = None, metavar: str = "N") -> Kind:
    bound = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    return Kind(
        expected=f"an integer {bound}",
        metavar=metavar,
        from_text=int,
        accepts=lambda value: type(value) is int and value >= at_least and (at_most is None or value <= at_most),
    )


def number(metavar: str, at_most: float) -> Kind:
    return Kind(
        expected=f"a number from 0 to {at_most:g}",
        metavar=metavar,
        from_text=float,
        accepts=lambda value: type(value) in (int, float) and 0 <= value <= at_most,
    )


def choice(*values: str) -> Kind:
    """One of the values, in upper or lower case."""
    spelled = {value.lower(): value for value in values}
    return Kind(
        expected=f"one of {', '.join(values)}",
        metavar="{" + ",".join(values) + "}",
        from_text=lambda text: spelled.get(text.lower(), text),
        accepts=lambda value: value in values,
        text_in_json=True,
    )


def text(metavar: str) -> Kind:
    return Kind(
        expected="a string",
        metavar=metavar,
        from_text=_optional_text,
        accepts=lambda value: value is None or isinstance(value, str),
        text_in_json=True,
    )


def word(metavar: str) -> Kind:
    return Kind(
        expected="a value that is not empty",
        metavar=metavar,
        from_text=str,
        accepts=lambda value: isinstance(value, str) and value != "",
    )


SECRET = Kind(
    expected="a key that is not empty",
    metavar="KEY",
    from_text=str,
    accepts=lambda value: isinstance(value, str) and value.strip() != "",
    is_secret=True,
)
STRINGS = Kind(
    expected="a JSON list of strings",
    metavar="JSON",
    from_text=json.decode,
    accepts=lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    kept_as=tuple,
)
OBJECT = Kind(
    expected="a JSON object",
    metavar="JSON",
    from_text=json.decode,
    accepts=lambda value: isinstance(value, dict),
    kept_as=lambda value: value or None,
)
SWITCH = Kind(
    expected="true or false",
    from_text=_truth,
    accepts=lambda value: isinstance(value, bool),
)
PORT = integer(0, 65535, "PORT")
DESCRIPTOR = integer(0, 2**31 - 1, "FD")
SECONDS = integer(0, 10**9, "SECONDS")
ENGINES = integer(1, MOST_ENGINES)
TOKENS = Kind(
    expected="a number of tokens such as 8192, 8k (thousands) or 8K (1024s)",
    metavar="N",
    from_text=_token_count,
    accepts=lambda value: type(value) is int and 1 <= value < 2**63,
    text_in_json=True,
)
TOKENS_OR_AUTO = Kind(
    expected="a number of tokens such as 8192, 8k (thousands) or 8K (1024s), or auto (-1)",
    metavar="N",
    from_text=_token_count,
    accepts=lambda value: type(value) is int and (1 <= value < 2**63 or value == -1),
    text_in_json=True,
)
