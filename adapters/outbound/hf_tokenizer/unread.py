"""transformers, as little of it as a tokenizer takes.

Its `__init__` reads the files of every model, thousands of them, to know what could be imported from where, and so do
those of its models: half a second, for names of which a tokenizer needs one or two.
"""

import re
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

PACKAGES: Final = ("transformers", "transformers.models")

TOKENIZERS: Final = ("tokenization_python.py", "tokenization_utils_*.py", "models/*/tokenization_*.py")
"""Where their classes are that need no package beside."""


def leave_unread() -> None:
    """Have these packages imported without running their `__init__`, which is for whoever asks for what they would have
    from elsewhere than a tokenizer's module. Not those that are imported already."""
    for name in PACKAGES:
        spec = None if name in sys.modules else find_spec(name)
        if spec is not None:
            package = module_from_spec(spec)
            package.__class__ = _Unread
            sys.modules[name] = package


class _Unread(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return version(self.__name__)
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        try:
            found = _tokenizer(self, name)
        except (AttributeError, ImportError):  # nor is its module to be imported where something is missing
            self.__class__ = _Read  # type: ignore[assignment]  # as modules may
            self.__spec__.loader.exec_module(self)
            return getattr(self, name)
        setattr(self, name, found)
        return found


class _Read(ModuleType):
    """It may have put another in its place, which those who imported it before do not know of."""

    def __getattr__(self, name: str) -> Any:
        successor = sys.modules[self.__name__]
        if successor is self:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(successor, name)


def _tokenizer(package: ModuleType, name: str) -> Any:
    """A tokenizer's class, of the first module that has it. Raises AttributeError, ImportError."""
    if re.fullmatch(r"\w+Tokenizer(Fast)?", name):
        is_defined = re.compile(rf"^(class )?{name}\b *[=(:]", re.MULTILINE)
        folder = Path(package.__path__[0])
        for path in (path for pattern in TOKENIZERS for path in sorted(folder.glob(pattern))):
            if is_defined.search(path.read_text()):
                module = ".".join(path.relative_to(folder).with_suffix("").parts)
                return getattr(import_module(f"{package.__name__}.{module}"), name)
    raise AttributeError(name)
