"""script/mutate can be believed: its list is up to date, and it tells what the tests notice from what they do not."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.architecture.tree import ROOT, contracts, copy_tree

TESTS = ["tests/domain/test_precedence.py"]
RULE = "return server_default if requested is None else requested"


def load_mutate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("northbound_mutate", ROOT / "script/mutate.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks for its own types
    spec.loader.exec_module(module)
    return module


mutate = load_mutate()


def mutation(**what: Any) -> Any:
    given = {"name": "m", "rule": "r", "file": "domain/precedence.py", "search": RULE, "tests": TESTS} | what
    return mutate.Mutation(**given)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """As much of the code as those tests need."""
    copy_tree(tmp_path)
    for name in ("__init__.py", "conftest.py", "domain/__init__.py", "domain/test_precedence.py"):
        (tmp_path / "tests/domain").mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / "tests" / name, tmp_path / "tests" / name)
    return tmp_path


@pytest.mark.parametrize("listed", mutate.read_list(), ids=lambda listed: listed.name)
def test_every_mutation_still_applies_and_names_tests_that_are_there(listed: Any) -> None:
    mutate.check_applies(listed, ROOT)

    assert listed.tests
    assert all((ROOT / test.partition("::")[0]).is_file() for test in listed.tests)


def test_every_import_contract_has_one() -> None:
    listed = {listed.contract for listed in mutate.read_list()} - {""}

    assert listed == {one["id"] for one in contracts()}


@pytest.mark.parametrize(
    ("replace", "outcome"),
    [
        ("return bool(requested)", "red"),
        (f"{RULE}  # as before", "SURVIVED"),
        ("return (", "ERROR"),
    ],
)
def test_outcomes(replace: str, outcome: str, tree: Path) -> None:
    assert mutate.try_out(mutation(replace=replace), tree).outcome == outcome


def test_tests_that_are_not_there_prove_nothing(tree: Path) -> None:
    lost = mutation(replace="return bool(requested)", tests=[f"{TESTS[0]}::test_of_old"])

    assert mutate.try_out(lost, tree).outcome == "ERROR"


@pytest.mark.parametrize(
    "what",
    [
        {"search": "return what was here once"},
        {"search": "return"},
        {"file": "domain/gone.py"},
        {"creates": True, "search": "", "append": "import numpy"},
        {"replace": "return ("},
    ],
    ids=["gone", "ambiguous", "in a file that is gone", "a file that is there already", "no Python"],
)
def test_one_that_does_not_apply_is_an_error(what: dict[str, Any], tree: Path) -> None:
    with pytest.raises(mutate.Unusable, match="no longer applies"):
        mutate.check_applies(mutation(**what), tree)


def test_tests_that_are_red_already_are_an_error(tree: Path) -> None:
    mutation(replace="return bool(requested)").apply(tree)

    with pytest.raises(mutate.Unusable, match="not green"):
        mutate.check_green([mutation()], tree)
