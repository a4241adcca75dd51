"""Adapters that come and go, one name at a time."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from application.ports.lora import AdapterNotFound, AdapterNotLoaded
from application.services.lora import LONGEST_NAME, AdapterRefused, LoraAdapters
from domain.lora import LoraAdapter
from tests.fakes.lora import LoadingEngine
from tests.patience import PATIENCE_S


@pytest.fixture
def engine() -> LoadingEngine:
    return LoadingEngine()


@pytest.fixture
def adapters(engine: LoadingEngine) -> LoraAdapters:
    return LoraAdapters(engine, ["first", "second"])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path)


async def started(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """It has got as far as it gets by itself."""
    task = asyncio.create_task(work)
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_one_that_was_loaded_is_there(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    await adapters.load("a", path, is_3d=True)
    loaded = LoraAdapter(name="a", id=1, path=path, is_3d=True)
    assert adapters.get("a") == loaded
    assert adapters.loaded == [loaded]
    assert engine.loads == [(loaded, False)]
    assert adapters.get("b") is None
    assert adapters.get(None) is None


async def test_only_a_base_that_is_served_is_kept(adapters: LoraAdapters, path: str) -> None:
    await adapters.load("a", path, base_model_name="second")
    await adapters.load("b", path, base_model_name="third")
    assert [adapter.base_model_name for adapter in adapters.loaded] == ["second", None]


async def test_it_is_there_once_the_engine_has_it(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    engine.gate.clear()
    loading = await started(adapters.load("a", path))
    assert adapters.get("a") is None
    engine.gate.set()
    await loading
    assert adapters.get("a") is not None


async def test_each_has_an_id_that_none_had_before(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    await adapters.load("a", path)
    await adapters.unload("a")
    engine.failures = [AdapterNotLoaded("no")]
    with pytest.raises(AdapterNotLoaded):
        await adapters.load("b", path)
    await adapters.load("a", path)
    assert [adapter.id for adapter, _ in engine.loads] == [1, 2, 3]


async def test_in_place_it_keeps_its_id_and_its_turn(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    for name in "ab":
        await adapters.load(name, path)
    await adapters.load("a", "/", in_place=True)
    assert [(adapter.name, adapter.id, adapter.path) for adapter in adapters.loaded] == [("a", 1, "/"), ("b", 2, path)]
    assert [in_place for _, in_place in engine.loads] == [False, False, True]


async def test_what_does_not_load_in_place_changes_nothing(adapters: LoraAdapters, path: str) -> None:
    await adapters.load("a", path)
    before = adapters.loaded
    with pytest.raises(AdapterNotFound):
        await adapters.load("a", f"{path}/gone", in_place=True)
    assert adapters.loaded == before


@pytest.mark.parametrize(
    ("name", "path", "param"),
    [
        ("", "/", "lora_name"),
        ("a", "", "lora_path"),
        ("second", "/", "lora_name"),
        ("a" * (LONGEST_NAME + 1), "/", "lora_name"),
    ],
)
async def test_what_cannot_be_loaded(
    adapters: LoraAdapters, engine: LoadingEngine, name: str, path: str, param: str
) -> None:
    with pytest.raises(AdapterRefused) as refused:
        await adapters.load(name, path, in_place=True)
    assert refused.value.param == param
    assert len(str(refused.value)) < 200
    assert engine.loads == []


async def test_the_longest_name(adapters: LoraAdapters, path: str) -> None:
    await adapters.load("a" * LONGEST_NAME, path)
    assert adapters.get("a" * LONGEST_NAME) is not None


async def test_a_name_is_taken_once(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    await adapters.load("a", path)
    with pytest.raises(AdapterRefused, match="`a` is loaded already") as refused:
        await adapters.load("a", path)
    assert refused.value.param == "lora_name"
    assert len(engine.loads) == 1


async def test_two_loads_of_one_name_at_once_are_one(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    engine.gate.clear()
    first, second = [await started(adapters.load("a", path)) for _ in range(2)]
    engine.gate.set()
    await first
    with pytest.raises(AdapterRefused):
        await second
    assert len(engine.loads) == 1


async def test_the_second_is_loaded_if_the_first_could_not_be(
    adapters: LoraAdapters, engine: LoadingEngine, path: str
) -> None:
    engine.failures = [AdapterNotLoaded("no")]
    engine.gate.clear()
    first, second = [await started(adapters.load("a", path)) for _ in range(2)]
    engine.gate.set()
    with pytest.raises(AdapterNotLoaded):
        await first
    await second
    assert adapters.get("a") is not None


async def test_names_do_not_wait_for_each_other(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    await adapters.load("b", path)
    engine.gate.clear()
    loading = await started(adapters.load("a", path))
    async with asyncio.timeout(PATIENCE_S):
        await adapters.unload("b")
    engine.gate.set()
    await loading
    assert [adapter.name for adapter in adapters.loaded] == ["a"]


async def test_unloading_waits_for_a_load_under_way(adapters: LoraAdapters, engine: LoadingEngine, path: str) -> None:
    engine.gate.clear()
    loading = await started(adapters.load("a", path))
    unloading = await started(adapters.unload("a"))
    assert not unloading.done()
    engine.gate.set()
    await loading
    await unloading
    assert adapters.loaded == []


@pytest.mark.parametrize("name", ["a", "lost", "first"])
async def test_what_is_not_there_cannot_be_unloaded(adapters: LoraAdapters, path: str, name: str) -> None:
    await adapters.load("lost", path)
    await adapters.unload("lost")
    with pytest.raises(AdapterNotFound) as refused:
        await adapters.unload(name)
    assert refused.value.param == "lora_name"


async def test_nothing_is_not_unloaded(adapters: LoraAdapters) -> None:
    with pytest.raises(AdapterRefused) as refused:
        await adapters.unload("")
    assert refused.value.param == "lora_name"
