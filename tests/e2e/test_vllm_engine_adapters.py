"""Loading adapters into engines: what is asked of them, and what becomes of it if they do not answer as hoped."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from adapters.outbound.vllm_engine.wire import FinishCode, UtilityRequest
from application.ports.engine import EngineDead, EngineUnavailable
from application.ports.lora import AdapterNotFound, AdapterNotLoaded
from domain.lora import LoraAdapter
from tests.e2e.engines import connected, read, request
from tests.e2e.test_vllm_engine_death import disconnect, leave, say_dead, unreadable
from tests.fakes.scripted_engine_core import ScriptedEngineCore, soon

ADAPTER = LoraAdapter(name="a", id=7, path="/x", base_model_name="m", is_3d=True)


async def test_every_engine_is_asked_and_waited_for() -> None:
    async with ScriptedEngineCore(0) as first, ScriptedEngineCore(1) as second, connected(first, second) as engine:
        loading = asyncio.create_task(engine.load_adapter(ADAPTER, in_place=True))
        calls = [await core.next_call() for core in (first, second)]
        assert [(call.client_index, call.method) for call in calls] == [(0, "add_lora")] * 2
        assert [call.args for call in calls] == [[["a", 7, "/x", "m", True, True]]] * 2
        assert calls[0].call_id != calls[1].call_id

        await second.reply(calls[1])
        stream = await engine.submit(replace(request(), data_parallel_rank=1))
        await second.step((await second.next_request()).request_id, 1, finish_reason=FinishCode.LENGTH)
        assert len(await read(stream)) == 1
        assert not loading.done()

        await first.reply(calls[0])
        await soon(loading)


async def test_requests_bring_it_and_never_have_it_read_anew() -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        await engine.submit(replace(request(), adapter=ADAPTER))
        lora = (await core.next_request()).lora_request
        assert lora is not None
        assert [getattr(lora, field) for field in lora.__struct_fields__] == ["a", 7, "/x", "m", False, True]


async def test_replies_are_told_apart() -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        good, bad = (asyncio.create_task(engine.load_adapter(replace(ADAPTER, id=number))) for number in (1, 2))
        first, second = await core.next_call(), await core.next_call()
        await core.reply(UtilityRequest(0, 2**64 - 1, "add_lora"), "whose is this?")
        await core.reply(second, "Call to add_lora method failed: no room")
        await core.reply(second, "said twice")
        with pytest.raises(AdapterNotLoaded, match=r"^no room$"):
            await soon(bad)
        assert not good.done()
        await core.reply(first)
        await soon(good)


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        (
            "Call to add_lora method failed: Loading lora a failed: No adapter found for /x",
            AdapterNotFound,
            "There is no adapter at the path.",
        ),
        (
            "Call to add_lora method failed: Worker failed with error 'Loading lora a failed: No adapter found for /x'",
            AdapterNotFound,
            "There is no adapter at the path.",
        ),
        ("Call to add_lora method failed: LoRA rank 64 is too much", AdapterNotLoaded, "LoRA rank 64 is too much"),
        ("Server shutting down", AdapterNotLoaded, "Server shutting down"),
    ],
)
async def test_one_engine_that_cannot_is_enough(said: str, kind: type[Exception], message: str) -> None:
    async with ScriptedEngineCore(0) as first, ScriptedEngineCore(1) as second, connected(first, second) as engine:
        loading = asyncio.create_task(engine.load_adapter(ADAPTER))
        await first.reply(await first.next_call())
        await second.reply(await second.next_call(), said)
        with pytest.raises(kind) as failed:
            await soon(loading)
        assert str(failed.value) == message
        assert engine.is_alive


@pytest.mark.parametrize("way", [say_dead, disconnect, leave, unreadable])
async def test_an_engine_that_dies_meanwhile(way: Callable[[ScriptedEngineCore], Awaitable[None]]) -> None:
    async with ScriptedEngineCore(0) as first, ScriptedEngineCore(1) as second, connected(first, second) as engine:
        loading = asyncio.create_task(engine.load_adapter(ADAPTER))
        await first.reply(await first.next_call())
        await second.next_call()
        await way(second)
        with pytest.raises(EngineDead):
            await soon(loading)
        with pytest.raises(EngineDead):
            await soon(engine.load_adapter(ADAPTER))


async def test_an_engine_that_is_gone_before_it_is_asked() -> None:
    async with ScriptedEngineCore(0) as first, ScriptedEngineCore(1) as second, connected(first, second) as engine:
        second.close()
        with pytest.raises(EngineDead):
            await soon(engine.load_adapter(ADAPTER))


async def test_letting_go_ends_the_wait() -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        loading = asyncio.create_task(engine.load_adapter(ADAPTER))
        await core.next_call()
        await engine.aclose()
        with pytest.raises(EngineUnavailable):
            await soon(loading)
        with pytest.raises(EngineDead):
            await engine.load_adapter(ADAPTER)


async def test_who_waits_no_longer_gets_no_reply() -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        impatient = asyncio.create_task(engine.load_adapter(ADAPTER))
        late = await core.next_call()
        impatient.cancel()
        await asyncio.gather(impatient, return_exceptions=True)
        assert impatient.cancelled()
        await core.reply(late, "too late")
        loading = asyncio.create_task(engine.load_adapter(ADAPTER))
        await core.reply(await core.next_call())
        await soon(loading)
