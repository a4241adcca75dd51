"""Applies each mutation of mutations.toml to a copy of the tree, and runs the tests that must turn red.

A mutation is a small patch, named, with the rule it breaks and the smallest selection of tests that has to notice. It
survives if they stay green. One that no longer applies, or whose tests cannot be run, is an error: it proves nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = Path(__file__).with_name("mutations.toml")

MOST_SECONDS = 180
"""For the tests of one mutation. A run that takes longer is an error: what hangs says nothing."""

MOST_SECONDS_OF_ALL = 1200
"""For all of them together, before any mutation."""

IMPATIENT = {"NORTHBOUND_TEST_PATIENCE_S": "10"}
"""Set for the tests of a mutation, which may wait for what it keeps from coming."""

ALL_PASSED, SOME_FAILED = 0, 1
"""Exit statuses of pytest. Any other means that it could not do what it was asked to."""


class Unusable(Exception):
    """A mutation that does not apply, or a list of them that leaves something out."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One way to break the code: in `file`, either `search` is replaced or `append` is added."""

    name: str
    rule: str
    file: str
    tests: list[str]
    search: str = ""
    replace: str = ""
    append: str = ""
    contract: str = ""
    """The import contract it breaks, if it is one of those."""
    creates: bool = False
    """Whether `file` is new."""

    def apply(self, tree: Path) -> None:
        path = tree / self.file
        if self.creates == path.exists():
            raise Unusable(f"{self.file} is there already" if self.creates else f"{self.file} is gone")
        if self.creates:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.append)
            return
        source = path.read_text()
        if not self.search:
            path.write_text(f"{source}\n{self.append}\n")
            return
        if (count := source.count(self.search)) != 1:
            raise Unusable(f"what to replace is there {count} times in {self.file}")
        path.write_text(source.replace(self.search, self.replace))


class Verdict(NamedTuple):
    mutation: Mutation
    outcome: str
    seconds: float
    output: str = ""

    @property
    def is_red(self) -> bool:
        return self.outcome == "red"


def read_list() -> list[Mutation]:
    mutations = [Mutation(**entry) for entry in tomllib.loads(LIST.read_text())["mutation"]]
    names = [mutation.name for mutation in mutations]
    if twice := {name for name in names if names.count(name) > 1}:
        raise Unusable(f"several mutations have the same name: {', '.join(sorted(twice))}")
    for mutation in mutations:
        if bool(mutation.search) == bool(mutation.append) and not mutation.creates:
            raise Unusable(f"{mutation.name} must either replace or append")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    if missing := {contract["id"] for contract in contracts} - {mutation.contract for mutation in mutations}:
        raise Unusable(f"no mutation breaks these import contracts: {', '.join(sorted(missing))}")
    return mutations


def copy_tracked(to: Path) -> None:
    """What git tracks, as it is in the working tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def run_tests(
    tree: Path, tests: Sequence[str], most_seconds: int, variables: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Pytest's exit status and output for a selection of the tree's own tests, which see the tree's own packages."""
    # loading every plugin that is installed takes longer than most of these tests
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **(variables or {})}
    options = [
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "pytest_timeout",
        "-p",
        "no:cacheprovider",
        "--exitfirst",
        "--quiet",
        "--no-header",
        "--tb=short",
    ]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=most_seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return -1, f"took longer than {most_seconds} s"
    return run.returncode, run.stdout + run.stderr


def check_copy(tree: Path) -> None:
    """The copy's tests must see the copy's packages, not those that are installed."""
    source = "import domain, application, adapters; print(domain.__file__, application.__file__, adapters.__file__)"
    environment = os.environ | {"PYTHONPATH": str(tree)}
    run = subprocess.run(
        [sys.executable, "-c", source], cwd=tree, env=environment, capture_output=True, text=True, check=True
    )
    if not all(Path(path).is_relative_to(tree) for path in run.stdout.split()):
        raise Unusable(f"tests of the copy would test {run.stdout}")


def check_applies(mutation: Mutation, pristine: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        if (pristine / mutation.file).exists():
            (tree / mutation.file).parent.mkdir(parents=True)
            shutil.copy2(pristine / mutation.file, tree / mutation.file)
        try:
            mutation.apply(tree)
            if mutation.file.endswith(".py"):
                compile((tree / mutation.file).read_text(), mutation.file, "exec")
        except Unusable as reason:
            raise Unusable(f"{mutation.name} no longer applies: {reason}") from None
        except SyntaxError as error:
            raise Unusable(f"{mutation.name} no longer applies: it makes {error}") from None


def try_out(mutation: Mutation, pristine: Path) -> Verdict:
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"mutate-{mutation.name}-") as folder:
        tree = Path(folder).resolve() / "tree"
        shutil.copytree(pristine, tree)  # with the bytecode that the run without mutations left
        mutation.apply(tree)
        changed = tree / mutation.file
        for bytecode in changed.parent.glob(f"__pycache__/{changed.stem}.*"):
            bytecode.unlink()
        status, output = run_tests(tree, mutation.tests, MOST_SECONDS, IMPATIENT)
    outcome = {ALL_PASSED: "SURVIVED", SOME_FAILED: "red"}.get(status, "ERROR")
    return Verdict(mutation, outcome, time.monotonic() - start, output)


def check_green(mutations: Sequence[Mutation], pristine: Path) -> None:
    tests = list(dict.fromkeys(test for mutation in mutations for test in mutation.tests))
    status, output = run_tests(pristine, tests, MOST_SECONDS_OF_ALL)
    if status != ALL_PASSED:
        raise Unusable(f"the tests are not green before any mutation:\n{output}")


def show(verdict: Verdict) -> None:
    mutation = verdict.mutation
    print(f"{verdict.outcome:8} {verdict.seconds:5.1f} s  {mutation.name:40} {mutation.rule}", flush=True)
    if not verdict.is_red:
        print("    " + "\n    ".join(verdict.output.splitlines()[-25:]), flush=True)


def main() -> int:
    arguments = argparse.ArgumentParser(description="Break the code on purpose and see that the tests notice.")
    arguments.add_argument("names", nargs="*", help="only these mutations")
    arguments.add_argument("--list", action="store_true", help="print the mutations and run nothing")
    given = arguments.parse_args()
    start = time.monotonic()
    try:
        mutations = read_list()
        if unknown := set(given.names) - {mutation.name for mutation in mutations}:
            raise Unusable(f"no such mutation: {', '.join(sorted(unknown))}")
        chosen = [mutation for mutation in mutations if not given.names or mutation.name in given.names]
        if given.list:
            for mutation in chosen:
                print(f"{mutation.name:40} {mutation.rule}")
            return 0
        with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
            pristine = Path(folder).resolve()
            copy_tracked(pristine)
            for mutation in chosen:
                check_applies(mutation, pristine)
            check_copy(pristine)
            check_green(chosen, pristine)
            print(f"green without mutations, after {time.monotonic() - start:.0f} s", flush=True)
            survivors = []
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for verdict in pool.map(lambda mutation: try_out(mutation, pristine), chosen):
                    show(verdict)
                    if not verdict.is_red:
                        survivors.append(verdict.mutation.name)
    except Unusable as reason:
        print(f"mutate: {reason}", file=sys.stderr)
        return 2
    red = len(chosen) - len(survivors)
    print(f"{red} of {len(chosen)} mutations turned the tests red, in {time.monotonic() - start:.0f} s")
    if survivors:  # once more, where whoever sees only the end of a log sees them
        print(f"not red: {', '.join(survivors)}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
