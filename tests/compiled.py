"""What there is in C, made from this tree's sources."""

import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from adapters.inbound.http.openai import filling
from adapters.inbound.http.openai.filling import FillRows
from adapters.outbound.vllm_engine import row_forms
from adapters.outbound.vllm_engine.row_forms import ReadRow

STRICT = ["-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-shared", "-fPIC"]


def compiler() -> list[str] | None:
    """None where there is none, or no headers of Python."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return command if shutil.which(command[0]) and headers.exists() else None


needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler, or no headers of Python")


@cache
def compiled(source: Path) -> ModuleType:
    command = compiler()
    assert command is not None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, f"{source.stem}.so")
        include = f"-I{sysconfig.get_path('include')}"
        subprocess.run([*command, *STRICT, include, str(source), "-o", str(made)], check=True)
        loader = ExtensionFileLoader(source.stem, str(made))
        spec = spec_from_loader(source.stem, loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
    return module


def compiled_fill_rows() -> FillRows:
    return cast("FillRows", compiled(Path(filling.__file__).with_name("_filling.c")).fill_rows)


def compiled_read_row() -> ReadRow:
    return cast("ReadRow", compiled(Path(row_forms.__file__).with_name("_row_reading.c")).read_row)
