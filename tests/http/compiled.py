"""The compiled way to fill rows, made from this tree's source."""

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
from typing import cast

import pytest

from adapters.inbound.http.openai import filling
from adapters.inbound.http.openai.filling import FillRows

SOURCE = Path(filling.__file__).with_name("_filling.c")
STRICT = ["-O2", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-shared", "-fPIC"]


def compiler() -> list[str] | None:
    """None where there is none, or no headers of Python."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return command if shutil.which(command[0]) and headers.exists() else None


needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler, or no headers of Python")


@cache
def compiled_fill_rows() -> FillRows:
    command = compiler()
    assert command is not None
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "_filling.so")
        include = f"-I{sysconfig.get_path('include')}"
        subprocess.run([*command, *STRICT, include, str(SOURCE), "-o", str(made)], check=True)
        loader = ExtensionFileLoader("_filling", str(made))
        spec = spec_from_loader("_filling", loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
    return cast("FillRows", module.fill_rows)
