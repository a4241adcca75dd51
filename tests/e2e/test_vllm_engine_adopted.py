"""Sockets that a launcher has bound, and told its engines of."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.outbound.vllm_engine.connect import connect_supervised
from adapters.outbound.vllm_engine.handshake import HandshakeFailed
from adapters.outbound.vllm_engine.transport import TransportFailure
from adapters.outbound.vllm_engine.wire import EngineAddresses
from tests.e2e.engines import read, request
from tests.fakes.scripted_engine_core import ScriptedEngineCore, soon


def listener(family: socket.AddressFamily, directory: Path, name: str) -> tuple[int, str]:
    """A listening descriptor, and the address that engines are told."""
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.bind(str(directory / name) if family == socket.AF_UNIX else ("127.0.0.1", 0))
    bound.listen()
    address = bound.getsockname()
    endpoint = f"ipc://{address}" if family == socket.AF_UNIX else f"tcp://127.0.0.1:{address[1]}"
    return bound.detach(), endpoint


@pytest.mark.parametrize("family", [socket.AF_UNIX, socket.AF_INET])
async def test_listeners_are_adopted(family: socket.AddressFamily, tmp_path: Path) -> None:
    input_fd, inputs = listener(family, tmp_path, "input")
    output_fd, outputs = listener(family, tmp_path, "output")
    addresses = EngineAddresses(inputs=[inputs], outputs=[outputs])
    async with ScriptedEngineCore(4) as first, ScriptedEngineCore(5) as second:
        # one is there before us, one comes after
        await first.connect(addresses)
        connecting = connect_supervised(input_fd=input_fd, output_fd=output_fd, engine_start_index=4, engine_count=2)
        late = asyncio.create_task(second.connect(addresses))
        async with connecting as engine:
            await late
            assert not os.get_inheritable(input_fd)
            streams = [await engine.submit(request(f"r{index}")) for index in range(2)]
            for core in (first, second):
                await core.step((await core.next_request()).request_id, core.index, finish_reason=1)
            assert [(await read(stream))[0].token_ids for stream in streams] == [[4], [5]]
            first.disconnect()
            await soon(engine.died.wait())
            assert engine.death == "engine 4 closed its connection"
    for descriptor in (input_fd, output_fd):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.fixture
def pipe() -> Iterator[int]:
    read_end, write_end = os.pipe()
    yield read_end
    os.close(read_end)
    os.close(write_end)


async def test_a_descriptor_that_is_no_socket_is_named(pipe: int) -> None:
    with pytest.raises(TransportFailure, match=f"^--input-listener-fd: descriptor {pipe} is no socket"):
        async with connect_supervised(input_fd=pipe, output_fd=pipe):
            pass


async def test_a_descriptor_that_does_not_listen_is_named() -> None:
    with socket.socket() as idle:
        with pytest.raises(
            TransportFailure, match=f"^--input-listener-fd: descriptor {idle.fileno()} is no listening socket"
        ):
            async with connect_supervised(input_fd=idle.fileno(), output_fd=idle.fileno()):
                pass
        assert os.fstat(idle.fileno())


async def test_versions_are_checked_here_too(tmp_path: Path) -> None:
    input_fd, inputs = listener(socket.AF_UNIX, tmp_path, "input")
    output_fd, outputs = listener(socket.AF_UNIX, tmp_path, "output")
    async with ScriptedEngineCore(version="0.31.0") as core:
        await core.connect(EngineAddresses(inputs=[inputs], outputs=[outputs]))
        with pytest.raises(HandshakeFailed, match=r"vLLM 0.31.0"):
            async with connect_supervised(input_fd=input_fd, output_fd=output_fd):
                pass


async def test_who_does_not_come_is_named(tmp_path: Path) -> None:
    input_fd, _ = listener(socket.AF_UNIX, tmp_path, "input")
    output_fd, _ = listener(socket.AF_UNIX, tmp_path, "output")
    with pytest.raises(HandshakeFailed, match=r"Within 0.1 s, these of 1 engines were not ready: 0\.$"):
        async with connect_supervised(input_fd=input_fd, output_fd=output_fd, ready_timeout=0.1):
            pass
