"""What a serving process takes to start: neither vLLM nor torch, even where both are installed, and little else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.fakes.tokenizers import write_model_folder

SERVING = ["adapters.bootstrap.serving", "adapters.bootstrap.__main__"]
EVERYTHING = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("domain", "application", "adapters")
    for path in (ROOT / package).rglob("*.py")
)
HEAVY = {"vllm", "torch", "transformers", "huggingface_hub", "numpy", "fastokens"}
"""Each takes tens of megabytes, and a tenth of a second at least."""

COUNTING = """
import sys
read = set()
sys.addaudithook(lambda event, args: read.add(str(args[0])) if event == "open" else None)
from adapters.bootstrap import __main__, serving
{loading}
print(len(sys.modules), sum("/transformers/" in path for path in read))
"""
FOLDER = """
from adapters.outbound.hf_tokenizer.loading import load_tokenizer
load_tokenizer(sys.argv[1])
"""
TEMPLATE = """
from adapters.outbound.hf_tokenizer.unread import leave_unread
from adapters.outbound.jinja_chat.bare_tokenizer import bare_tokenizer
leave_unread()
bare_tokenizer("{{ messages }}", bos_token="<s>", eos_token="</s>")
"""

BUILDING = """
import sys
from adapters.outbound.mock_engine.scripted import ScriptedEngine
from tests.http.serving import application
application(ScriptedEngine([]))
print("litestar.plugins.pydantic" in sys.modules)
"""

SETTLING = """
import gc
gc.disable()
from adapters.bootstrap.settling import settle
made = [[] for _ in range(10_000)]
settle()
print(gc.isenabled(), gc.get_freeze_count() > 10_000)
"""


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


def said(source: str, *arguments: str | Path, beside: Path = ROOT) -> list[str]:
    """What a new process prints that runs this."""
    paths = os.pathsep.join(map(str, (beside, ROOT)))
    run = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def imported(modules: list[str], beside: Path) -> set[str]:
    """Which heavy packages are loaded once a new process has imported `modules`."""
    source = (
        "import importlib, sys\n"
        f"for module in {modules!r}: importlib.import_module(module)\n"
        f"print(*sorted({{name.partition('.')[0] for name in sys.modules}} & {HEAVY!r}))\n"
    )
    return set(said(source, beside=beside))


def test_what_is_imported_would_be_noticed(decoys: Path) -> None:
    assert imported([*SERVING, *HEAVY], decoys) == HEAVY


def test_serving_imports_nothing_heavy(decoys: Path) -> None:
    assert imported(SERVING, decoys) == set()


def test_no_module_imports_the_engine_s_packages(decoys: Path) -> None:
    assert imported(EVERYTHING, decoys) <= {"numpy"}


@pytest.mark.parametrize("loading", [FOLDER, TEMPLATE], ids=["a folder's", "of a template alone"])
def test_a_tokenizer_takes_few_modules_and_few_files(loading: str, tmp_path: Path) -> None:
    """There are more than 3,000 files in transformers, and it reads most of them to be imported as a whole."""
    modules, files_read = map(int, said(COUNTING.format(loading=loading), write_model_folder(tmp_path)))

    assert modules <= 1300
    assert 0 < files_read <= 200


def test_an_application_is_built_without_what_is_for_pydantic() -> None:
    assert said(BUILDING) == ["False"]


def test_what_is_made_before_serving_is_set_aside_and_what_is_made_later_is_collected() -> None:
    assert said(SETTLING) == ["True", "True"]
