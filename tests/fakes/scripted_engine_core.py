"""The engine's side of the protocol, a message at a time, under a test's control."""

import asyncio
import socket
from collections.abc import Awaitable, Sequence
from typing import Any, Self, TypeVar

import zmq
import zmq.asyncio

from adapters.outbound.vllm_engine.wire import (
    ABORT,
    ADD,
    ENGINE_CORE_DEAD,
    HELLO,
    READY,
    UTILITY,
    EngineAddresses,
    EngineCoreOutput,
    EngineCoreOutputs,
    EngineCoreRequest,
    EngineInit,
    EngineReady,
    HandshakeStatus,
    UtilityOutput,
    UtilityRequest,
    decode,
    encode,
    identity_of,
)
from tests.patience import PATIENCE_S

T = TypeVar("T")


async def soon(something: Awaitable[T]) -> T:
    """What comes of it, in time."""
    async with asyncio.timeout(PATIENCE_S):
        return await something


def free_port() -> int:
    """A TCP port of this machine that was free just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ScriptedEngineCore:
    """One engine core that says and does only what it is told to."""

    def __init__(self, index: int = 0, *, version: str = "0.32.0", max_model_len: int = 2048) -> None:
        self.index = index
        self.ready = EngineReady(max_model_len=max_model_len, vllm_version=version)
        self.addresses: EngineAddresses | None = None
        self._context = zmq.asyncio.Context()
        self._doorstep = self._dealer()
        self._input = self._dealer()
        self._output = self._context.socket(zmq.PUSH)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self, linger_ms: int = 0) -> None:
        """Leave, having sent what was said if that takes no longer. May be called again."""
        self._context.destroy(linger=linger_ms)

    async def start(self, doorstep: str) -> Self:
        """All of the handshake."""
        await self.say_hello(doorstep)
        await self.connect(await self.hear_addresses())
        await self.say(READY)
        return self

    async def say_hello(self, doorstep: str) -> None:
        self._doorstep.connect(doorstep)
        await self.say(HELLO)

    async def say(self, status: str) -> None:
        await self._doorstep.send(encode(HandshakeStatus(status, local=False, headless=True)))

    async def hear_addresses(self) -> EngineAddresses:
        return decode(await soon(self._doorstep.recv()), EngineInit).addresses

    async def connect(self, addresses: EngineAddresses, ready: bytes | None = None) -> None:
        """Connect, and say what this engine is."""
        self.addresses = addresses
        self._input.connect(addresses.inputs[0])
        self._output.connect(addresses.outputs[0])
        await self._input.send(encode(self.ready) if ready is None else ready)

    async def receive(self) -> tuple[bytes, bytes]:
        """What the next message is, and what it says."""
        kind, message = await soon(self._input.recv_multipart())
        return kind, message

    async def next_request(self) -> EngineCoreRequest:
        kind, message = await self.receive()
        assert kind == ADD
        return decode(message, EngineCoreRequest)

    async def next_abort(self) -> list[str]:
        kind, message = await self.receive()
        assert kind == ABORT
        return decode(message, list[str])

    async def next_call(self) -> UtilityRequest:
        kind, message = await self.receive()
        assert kind == UTILITY
        return decode(message, UtilityRequest)

    async def reply(self, call: UtilityRequest, failure: str | None = None) -> None:
        """What the call comes to."""
        outcome = UtilityOutput(call.call_id, failure, None if failure else (None, True))
        await self.send_frames(encode(EngineCoreOutputs(engine_index=self.index, utility_output=outcome)))

    async def send(self, *outputs: EngineCoreOutput, frames: Sequence[bytes] = (), at: float = 0.0) -> None:
        """One step's outputs, made at that time; `frames` are those behind the message's own."""
        message = EngineCoreOutputs(engine_index=self.index, outputs=outputs, timestamp=at)
        await self.send_frames(encode(message), *frames)

    async def step(self, request_id: str, *token_ids: int, **more: Any) -> None:
        """One step's output for one request."""
        await self.send(EngineCoreOutput(request_id, list(token_ids), **more))

    async def send_frames(self, *frames: bytes) -> None:
        await self._output.send_multipart(frames)

    async def say_dead(self) -> None:
        await self.send_frames(ENGINE_CORE_DEAD)

    def disconnect(self) -> None:
        """Close the connection that requests come on, and keep the others."""
        self._input.close(linger=0)

    def _dealer(self) -> zmq.asyncio.Socket:
        dealer = self._context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.IDENTITY, identity_of(self.index))
        return dealer
