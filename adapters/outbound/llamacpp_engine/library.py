"""llama.cpp itself, by way of inferna's bindings, which only some environments have."""

import importlib
import json
import logging
import os
from pathlib import Path
from typing import Any, Final

from domain.errors import EngineFailure

logger = logging.getLogger("northbound.llama.cpp")

ERROR: Final = 4
"""llama.cpp's own number for the level."""


class LibraryMissing(EngineFailure):
    """This environment has no llama.cpp."""


def load_library() -> Any:
    """inferna's module of bindings, which has no types. Raises LibraryMissing."""
    # Threads that wait for each other spin by default, which is many times slower as soon as anything else runs. It
    # counts at the first import.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        return importlib.import_module("inferna.llama.llama_cpp")
    except ImportError as error:
        raise LibraryMissing(
            "The llama.cpp engine is not installed here: it needs Python 3.12 or newer and, in Northbound's folder, "
            "`pip install '.[local]'`. `northbound serve --engine mock` serves without a model."
        ) from error


def version() -> str:
    """The build of llama.cpp that the bindings hold."""
    package = importlib.import_module("inferna").__file__ or ""
    build = json.loads((Path(package).parent / "build_config.json").read_bytes())
    return f"llama.cpp-{build['versions']['llama_cpp_version']}"


class LibraryLog:
    """Where llama.cpp's log lines go while it is in use: to our log at debug level, the errors kept as well, since
    what is raised does not say what they do."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._logs = logger.isEnabledFor(logging.DEBUG)
        self.last_error = ""
        library.set_log_callback(self._write)

    def close(self) -> None:
        self._library.disable_logging()

    def _write(self, level: int, line: str) -> None:
        if level == ERROR:
            self.last_error = line.strip()
        if self._logs:
            logger.debug("%s", line.rstrip())
