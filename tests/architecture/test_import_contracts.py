"""The import contracts hold, and each notices when it is broken."""

from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, append, broken_contracts, contract, contracts, copy_tree
from tests.architecture.violations import OPENAI, VIOLATIONS, VLLM, Violation


def test_they_hold() -> None:
    assert broken_contracts(ROOT) == set()


@pytest.mark.parametrize("violation", VIOLATIONS, ids=str)
def test_a_planted_violation_breaks_its_contract_and_no_other(violation: Violation, tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    append(tree, violation.module, violation.source)

    assert broken_contracts(tree) == {violation.contract_id}


def test_every_contract_has_an_id_of_its_own_and_a_violation() -> None:
    ids = [one["id"] for one in contracts()]

    assert len(set(ids)) == len(ids)
    assert set(ids) == {violation.contract_id for violation in VIOLATIONS}


def test_every_outbound_adapter_but_the_engines_is_kept_from_zmq() -> None:
    """The contract has to name them one by one."""
    outbound = {f"adapters.outbound.{path.parent.name}" for path in ROOT.glob("adapters/outbound/*/__init__.py")} - {
        "adapters.outbound.vllm_engine"
    }

    named = {module for module in contract("zmq-is-vllm")["source_modules"] if module.startswith("adapters.outbound.")}
    assert named == outbound


def test_every_endpoint_lowers_in_the_module_that_is_kept_from_server_options() -> None:
    """The contract names it by a pattern, which would hold as well if nothing matched."""
    endpoints = {path.parent.name for path in ROOT.glob(f"{OPENAI}/*/routes.py")}

    assert endpoints >= {"chat", "completions"}
    assert endpoints == {path.parent.name for path in ROOT.glob(f"{OPENAI}/*/lower.py")}


def test_so_does_every_route_of_vllm_s_own_that_is_asked_anything() -> None:
    lowering = {path.parent.name for path in ROOT.glob(f"{VLLM}/*/lower.py")}

    assert lowering == {path.parent.name for path in ROOT.glob(f"{VLLM}/*/schema.py")}
    assert lowering == {
        violation.module.split("/")[-2] for violation in VIOLATIONS if violation.module.startswith(VLLM)
    }
