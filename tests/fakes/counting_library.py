"""A tokenizer of the tokenizers library that counts what it is asked to do."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from tokenizers import Tokenizer


class CountingLibrary:
    """`calls` by the name of the method; those of its decoder begin with `decoder.`."""

    def __init__(self, library: Tokenizer) -> None:
        self.calls: Counter[str] = Counter()
        self._library = library

    @property
    def decoder(self) -> "_CountingDecoder":
        return _CountingDecoder(self._library.decoder, self.calls)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._library, name)
        return _counted(value, name, self.calls) if callable(value) else value


class _CountingDecoder:
    def __init__(self, decoder: Any, calls: Counter[str]) -> None:
        self._decoder = decoder
        self._calls = calls

    def __getstate__(self) -> Any:
        return self._decoder.__getstate__()

    def __getattr__(self, name: str) -> Any:
        return _counted(getattr(self._decoder, name), f"decoder.{name}", self._calls)


def _counted(method: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        calls[name] += 1
        return method(*args, **kwargs)

    return call
