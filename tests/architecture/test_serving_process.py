"""Starting the serving process imports neither vLLM nor torch, even where both are installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

SERVING = ["adapters.bootstrap.app", "adapters.bootstrap.container", "adapters.bootstrap.__main__"]
EVERYTHING = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("domain", "application", "adapters")
    for path in (ROOT / package).rglob("*.py")
)


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """Packages that stand in for an installed vLLM and torch: found by whoever looks for them, harmless to import."""
    for name, version in (("vllm", "0.32.0"), ("torch", "2.9.0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f'__version__ = "{version}"\n')
        metadata = tmp_path / f"{name}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return tmp_path


def imported(modules: list[str], beside: Path) -> set[str]:
    """Which of the engine's packages are loaded once a new process has imported `modules`."""
    source = (
        "import importlib, sys\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'vllm', 'torch'}))\n"
    )
    paths = os.pathsep.join(map(str, (beside, ROOT)))
    run = subprocess.run(
        [sys.executable, "-c", source], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return set(run.stdout.split())


def test_what_is_imported_would_be_noticed(decoys: Path) -> None:
    assert imported([*SERVING, "vllm", "torch"], decoys) == {"vllm", "torch"}


@pytest.mark.parametrize("modules", [SERVING, EVERYTHING], ids=["the composition root", "every module there is"])
def test_neither_is_imported(modules: list[str], decoys: Path) -> None:
    assert imported(modules, decoys) == set()
