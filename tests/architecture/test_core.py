"""What import contracts cannot see: the core uses no codec, and the domain neither waits nor looks at a clock."""

import ast
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT, append, copy_tree, with_banned_uses

CODEC_USES = [
    "import msgspec.json",
    "from msgspec import json",
    "from msgspec.msgpack import Encoder",
    "import msgspec\n\nmsgspec.json.encode({})",
    "import msgspec\n\nmsgspec.yaml.decode(b'')",
    "import msgspec\n\nmsgspec.toml.decode(b'')",
]

NOT_FOR_THE_DOMAIN = {"asyncio", "datetime", "json", "logging", "os", "pickle", "random", "socket", "threading", "time"}
"""Of the standard library."""


def test_the_tree_uses_no_codec_where_none_belongs() -> None:
    assert with_banned_uses(ROOT) == set()


@pytest.mark.parametrize("source", CODEC_USES)
@pytest.mark.parametrize("module", ["domain/errors.py", "application/requests.py", "application/services/models.py"])
def test_a_codec_in_the_core_is_noticed(module: str, source: str, tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    append(tree, module, source)

    assert with_banned_uses(tree) == {module}


@pytest.mark.parametrize("source", CODEC_USES)
def test_adapters_may_use_one(source: str, tmp_path: Path) -> None:
    tree = copy_tree(tmp_path)
    append(tree, "adapters/inbound/http/errors.py", source)

    assert with_banned_uses(tree) == set()


@pytest.mark.parametrize("path", sorted(ROOT.glob("domain/**/*.py")), ids=lambda path: path.name)
def test_the_domain_neither_waits_nor_reaches_out(path: Path) -> None:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    imported = {alias.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {(node.module or "").partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}

    assert not imported & NOT_FOR_THE_DOMAIN
    assert not [node for node in nodes if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor)]
