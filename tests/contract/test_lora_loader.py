"""What every engine that loads adapters promises, and how it generates with them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from adapters.outbound.mock_engine.engine import MockEngine
from adapters.outbound.vllm_engine.client import ZmqEngineCore
from application.ports.lora import AdapterNotFound
from domain.errors import EngineFailure
from domain.lora import LoraAdapter
from tests.contract.engines import open_engine
from tests.contract.test_engine_core import asked
from tests.fakes.lora import LoadingEngine
from tests.patience import PATIENCE_S

Engine = MockEngine | ZmqEngineCore


@pytest.fixture(params=["mock", "fake", "zmq"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    if request.param == "fake":
        fake = LoadingEngine()
        yield fake
        await fake.aclose()
        return
    async with open_engine(request.param, tokens_per_step=1, step_seconds=0.001) as under_test:
        assert isinstance(under_test.engine, Engine)
        yield under_test.engine


def adapter_at(path: Path, adapter_id: int = 1) -> LoraAdapter:
    path.mkdir(exist_ok=True)
    return LoraAdapter(name=f"a{adapter_id}", id=adapter_id, path=str(path))


async def text(engine: Engine, adapter: LoraAdapter | None) -> list[int]:
    stream = await engine.submit(replace(asked(max_tokens=24, ignore_eos=True), adapter=adapter))
    async with asyncio.timeout(PATIENCE_S):
        return [token_id async for delta in stream for token_id in delta.token_ids]


async def test_what_was_loaded_is_generated_with(engine: Engine, tmp_path: Path) -> None:
    adapters = [adapter_at(tmp_path / "x", 1), adapter_at(tmp_path / "y", 2)]
    for adapter in adapters:
        await engine.load_adapter(adapter)
    texts = [await text(engine, adapter) for adapter in (None, *adapters)]
    assert len({tuple(each) for each in texts}) == 3
    assert [await text(engine, adapter) for adapter in (None, *adapters)] == texts


async def test_nothing_at_the_path(engine: Engine, tmp_path: Path) -> None:
    adapter = adapter_at(tmp_path / "x")
    for path in (f"{tmp_path}/gone", "no/such adapter", "\0", "x" * 5000):
        with pytest.raises(AdapterNotFound) as refused:
            await engine.load_adapter(replace(adapter, path=path))
        assert refused.value.param == "lora_path"
    await engine.load_adapter(adapter)


async def test_one_that_is_loaded_stays_unless_another_takes_its_place(engine: Engine, tmp_path: Path) -> None:
    adapter = adapter_at(tmp_path / "x")
    await engine.load_adapter(adapter)
    gone = replace(adapter, path=f"{tmp_path}/gone")
    await engine.load_adapter(gone)
    with pytest.raises(AdapterNotFound):
        await engine.load_adapter(gone, in_place=True)
    await engine.load_adapter(adapter_at(tmp_path / "y"), in_place=True)


async def test_a_closed_engine_loads_nothing(engine: Engine, tmp_path: Path) -> None:
    await engine.aclose()
    with pytest.raises(EngineFailure):
        await engine.load_adapter(adapter_at(tmp_path / "x"))
