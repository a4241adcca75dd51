"""An engine that is lost, in each way that it can be."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest
import zmq
import zmq.asyncio

from adapters.outbound.vllm_engine.wire import EngineCoreOutput, FinishCode, LogprobRows, Tensor, encode
from application.ports.engine import EngineDead
from domain.generation import TokenDelta
from tests.e2e.engines import connected, read, request
from tests.fakes.scripted_engine_core import ScriptedEngineCore, soon


async def unreadable(core: ScriptedEngineCore) -> None:
    await core.send_frames(b"\xc1 is no msgpack")


async def of_another_shape(core: ScriptedEngineCore) -> None:
    await core.send_frames(encode([0, [["r"]]]))


async def malformed_rows(core: ScriptedEngineCore) -> None:
    rows = LogprobRows(Tensor("<i4", [1, 1], 5), Tensor("<f4", [1, 1], 6), Tensor("<i4", [1], 7))
    await core.send(EngineCoreOutput((await core.next_request()).request_id, [1], rows))


async def say_dead(core: ScriptedEngineCore) -> None:
    await core.say_dead()


async def disconnect(core: ScriptedEngineCore) -> None:
    core.disconnect()


async def leave(core: ScriptedEngineCore) -> None:
    core.close()


WAYS: list[tuple[Callable[[ScriptedEngineCore], Awaitable[None]], str]] = [
    (say_dead, "it says that it failed"),
    (disconnect, "engine 0 closed its connection"),
    (leave, "engine 0 closed its connection"),
    (unreadable, "it sent a message that cannot be read"),
    (of_another_shape, "it sent a message that cannot be read"),
    (malformed_rows, "it sent a message that cannot be read: frame 5 of 1 was named"),
]


@pytest.mark.parametrize(("way", "reason"), WAYS)
async def test_a_lost_engine(
    caplog: pytest.LogCaptureFixture, way: Callable[[ScriptedEngineCore], Awaitable[None]], reason: str
) -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        streams = [await engine.submit(request(logprobs=0)) for _ in range(2)]
        waiting = [asyncio.create_task(read(stream)) for stream in streams]
        await way(core)
        await soon(engine.died.wait())
        for task in waiting:
            with pytest.raises(EngineDead, match=reason):
                await soon(task)
        assert not engine.is_alive
        assert engine.death is not None
        assert reason in engine.death
        with pytest.raises(EngineDead, match=reason):
            await engine.submit(request())
        for stream in streams:
            await stream.aclose()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        f"the engine died: {engine.death}"
    ]


async def test_one_lost_engine_of_several_is_enough() -> None:
    async with ScriptedEngineCore(0) as first, ScriptedEngineCore(1) as second, connected(first, second) as engine:
        second.disconnect()
        await soon(engine.died.wait())
        assert engine.death == "engine 1 closed its connection"


async def test_what_came_before_is_still_read() -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        stream = await engine.submit(request())
        await core.step((await core.next_request()).request_id, 1)
        await core.say_dead()
        await soon(engine.died.wait())
        assert await soon(anext(stream)) == TokenDelta([1])
        with pytest.raises(EngineDead):
            await soon(anext(stream))


async def test_whoever_knows_may_tell() -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        stream = await engine.submit(request())
        engine.mark_dead("its process ended with exit code 3")
        engine.mark_dead("the second reason does not count")
        with pytest.raises(EngineDead, match="exit code 3"):
            await read(stream)
        assert engine.death == "its process ended with exit code 3"
        assert engine.died.is_set()


async def test_letting_go_is_no_death(caplog: pytest.LogCaptureFixture) -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        pass
    engine.mark_dead("too late")
    assert not engine.died.is_set()
    assert "died" not in caplog.text


async def test_strangers_that_come_and_go_are_no_death() -> None:
    context = zmq.asyncio.Context()
    async with ScriptedEngineCore() as core, connected(core) as engine:
        assert core.addresses is not None
        for _ in range(3):
            stranger = context.socket(zmq.DEALER)
            stranger.linger = 1000  # milliseconds: its word may find nobody any more, which must not hold us
            stranger.connect(core.addresses.inputs[0])
            await stranger.send(b"hello")
            stranger.close()
            stream = await engine.submit(request())
            await core.step((await core.next_request()).request_id, 1, finish_reason=FinishCode.LENGTH)
            assert len(await read(stream)) == 1
        # losses are told in order, so theirs have been told by then
        core.disconnect()
        await soon(engine.died.wait())
        assert engine.death == "engine 0 closed its connection"
    context.destroy(linger=0)


ODD_BYTES = (b"\x01\x00\x02\x00\xc0", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00" * 20)


async def test_bytes_of_no_engine_are_no_death() -> None:
    async with ScriptedEngineCore() as core, connected(core) as engine:
        assert core.addresses is not None
        for endpoint in (*core.addresses.inputs, *core.addresses.outputs):
            host, port = endpoint.removeprefix("tcp://").split(":")
            for odd in ODD_BYTES:
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(odd)
                with contextlib.suppress(OSError):  # cut off already
                    writer.write_eof()
                    await soon(reader.read())  # until libzmq has had enough of it
                writer.close()
        stream = await engine.submit(request())
        await core.step((await core.next_request()).request_id, 1, finish_reason=FinishCode.LENGTH)
        assert len(await read(stream)) == 1
        assert engine.is_alive
