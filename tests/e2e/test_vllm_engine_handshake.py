"""Meeting engines over real sockets."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import zmq
import zmq.asyncio

from adapters.outbound.vllm_engine.connect import connect_external
from adapters.outbound.vllm_engine.handshake import HandshakeFailed
from adapters.outbound.vllm_engine.transport import TransportFailure
from adapters.outbound.vllm_engine.wire import HELLO, READY
from tests.e2e.engines import connected, eventually
from tests.fakes.scripted_engine_core import ScriptedEngineCore, free_port, soon


@asynccontextmanager
async def connecting(**options: Any) -> AsyncIterator[tuple[str, "asyncio.Task[None]"]]:
    """A frontend that waits for engines: where, and a task that ends when it has met them, or fails."""
    port = free_port()

    async def meet() -> None:
        async with connect_external(host="127.0.0.1", port=port, **options):
            pass

    task = asyncio.create_task(meet())
    try:
        yield f"tcp://127.0.0.1:{port}", task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_engines_are_met() -> None:
    async with (
        ScriptedEngineCore(0, max_model_len=4096) as first,
        ScriptedEngineCore(1, max_model_len=1024, version="0.32.0") as second,
        connected(first, second) as engine,
    ):
        assert engine.version == "0.32.0"
        assert engine.max_model_len == 1024
        assert engine.is_alive


async def test_an_engine_must_both_connect_and_say_ready() -> None:
    async with ScriptedEngineCore() as core, connecting() as (doorstep, task):
        await core.say_hello(doorstep)
        addresses = await core.hear_addresses()
        await core.say(READY)
        await core.say(HELLO)
        await core.hear_addresses()  # so the frontend has read READY
        assert not task.done()
        await core.connect(addresses)
        await soon(task)


async def test_engines_are_told_of_sockets_that_they_can_reach() -> None:
    async with ScriptedEngineCore() as core, connecting() as (doorstep, _):
        await core.say_hello(doorstep)
        addresses = await core.hear_addresses()
        assert addresses.inputs[0].startswith("tcp://127.0.0.1:")
        assert addresses.outputs[0].startswith("tcp://127.0.0.1:")
        assert addresses.inputs != addresses.outputs
        assert addresses.coordinator_input is None


async def test_an_engine_that_is_started_anew_is_met() -> None:
    async with ScriptedEngineCore() as core, connecting() as (doorstep, task):
        async with ScriptedEngineCore() as crashed:
            await crashed.say_hello(doorstep)
            await crashed.hear_addresses()
        await core.start(doorstep)
        await soon(task)


@pytest.mark.parametrize("version", ["0.31.2", "0.34.0"])
async def test_other_versions_are_refused_by_name(version: str) -> None:
    async with ScriptedEngineCore(version=version) as core, connecting() as (doorstep, task):
        await core.start(doorstep)
        with pytest.raises(HandshakeFailed, match=rf"Engine 0 is vLLM {version}.*--allow-engine-version"):
            await soon(task)


async def test_other_versions_may_be_allowed() -> None:
    async with ScriptedEngineCore(version="0.34.0") as core, connected(core, allow_engine_version=["0.34"]) as engine:
        assert engine.version == "0.34.0"


async def test_an_engine_too_many_is_named() -> None:
    async with ScriptedEngineCore(3) as core, connecting(engine_count=2) as (doorstep, task):
        await core.say_hello(doorstep)
        with pytest.raises(HandshakeFailed, match=r"Engine 3 came, but 2 engines are expected.*--data-parallel-size"):
            await soon(task)


async def test_who_is_missing_is_named() -> None:
    async with ScriptedEngineCore(1) as core, connecting(engine_count=2, ready_timeout=0.3) as (doorstep, task):
        await core.start(doorstep)
        with pytest.raises(HandshakeFailed, match=r"Within 0.3 s, .*not ready: 0. Said hello: 1"):
            await soon(task)


async def test_an_engine_that_leaves_is_named() -> None:
    async with ScriptedEngineCore(1) as core, connecting(engine_count=2) as (doorstep, task):
        await core.say_hello(doorstep)
        await core.connect(await core.hear_addresses())
        core.close(linger_ms=1000)
        with pytest.raises(HandshakeFailed, match="Engine 1 left"):
            await soon(task)


async def test_an_unreadable_ready_payload_fails() -> None:
    async with ScriptedEngineCore() as core, connecting() as (doorstep, task):
        await core.say_hello(doorstep)
        await core.connect(await core.hear_addresses(), ready=b"\xc1")
        with pytest.raises(HandshakeFailed, match="Engine 0 sent a message that cannot be read"):
            await soon(task)


async def test_strangers_are_ignored() -> None:
    context = zmq.asyncio.Context()
    async with ScriptedEngineCore() as core, connecting() as (doorstep, task):
        stranger = context.socket(zmq.DEALER)
        stranger.connect(doorstep)
        await stranger.send(b"GET / HTTP/1.1")
        await core.start(doorstep)
        await soon(task)
    context.destroy(linger=0)


async def test_waiting_may_be_cancelled_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="northbound")
    async with ScriptedEngineCore() as core, connecting() as (doorstep, task):
        await core.say_hello(doorstep)
        await core.hear_addresses()
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(task)
        assert time.monotonic() - started < 5
        async with connecting() as (_, other):  # nothing was left behind
            await eventually(lambda: "waiting for engines" in caplog.text)
            assert not other.done()


async def test_a_taken_port_is_one_clear_line() -> None:
    port = free_port()
    with zmq.Context() as context, context.socket(zmq.ROUTER) as taken:
        taken.bind(f"tcp://127.0.0.1:{port}")
        flags, at = "--data-parallel-address, --data-parallel-rpc-port", f"tcp://127.0.0.1:{port}"
        with pytest.raises(TransportFailure, match=f"^{flags}: cannot listen for engines at {at}: Address"):
            async with connect_external(host="127.0.0.1", port=port):
                pass


async def test_an_unknown_host_is_one_clear_line() -> None:
    with pytest.raises(
        TransportFailure, match=r"^--data-parallel-address: cannot listen for engines at no.such.host.invalid"
    ):
        async with connect_external(host="no.such.host.invalid", port=1):
            pass
