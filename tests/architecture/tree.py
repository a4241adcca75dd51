"""A copy of the source tree, to break rules in, and the tools that hold the rules."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("domain", "application", "adapters")

Contract = dict[str, Any]


def contracts() -> list[Contract]:
    """The import contracts, as pyproject.toml has them."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[Contract] = configuration["tool"]["importlinter"]["contracts"]
    return found


def contract(contract_id: str) -> Contract:
    [found] = [one for one in contracts() if one["id"] == contract_id]
    return found


def copy_tree(to: Path) -> Path:
    """The packages and their configuration, as they are in the working tree."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, to / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", to)
    return to


def append(tree: Path, module: str, source: str) -> None:
    """Add lines to a module, which must be there, or to the `__init__` of a package, which may be new."""
    path = tree / module
    if path.name == "__init__.py":
        path.parent.mkdir(exist_ok=True)
    elif not path.exists():
        raise FileNotFoundError(f"{module} is gone: break the rule in another module.")
    with path.open("a") as file:
        file.write(f"\n{source}\n")


def broken_contracts(tree: Path) -> set[str]:
    """Ids of the import contracts that do not hold in the tree."""
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        cwd=tree,
        capture_output=True,
        text=True,
    )
    verdicts = {one["id"]: one["name"] for one in contracts()}
    broken = {contract_id for contract_id, name in verdicts.items() if f"{name} BROKEN" in run.stdout}
    kept = {contract_id for contract_id, name in verdicts.items() if f"{name} KEPT" in run.stdout}
    assert broken | kept == set(verdicts), f"Not every contract was checked:\n{run.stdout}{run.stderr}"
    assert (run.returncode == 0) == (not broken), run.stdout
    return broken


def with_banned_uses(tree: Path) -> set[str]:
    """Modules of the tree that use an API that ruff is told to ban."""
    run = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID251", "--output-format", "concise", "."],
        cwd=tree,
        capture_output=True,
        text=True,
    )
    assert run.returncode in (0, 1), run.stderr
    return {line.partition(":")[0] for line in run.stdout.splitlines() if " TID251 " in line}
