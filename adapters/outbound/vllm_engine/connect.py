"""The three ways to engines: start them, wait for them, or be given them. Nothing is opened before it is entered."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from adapters.outbound.vllm_engine.client import ZmqEngineCore
from adapters.outbound.vllm_engine.grammar_backends import Backend
from adapters.outbound.vllm_engine.handshake import READY_TIMEOUT, EngineFacts, Handshake, shake_hands
from adapters.outbound.vllm_engine.process import EngineCommand, EngineNotStarted, EngineProcess, check_interpreter
from adapters.outbound.vllm_engine.transport import (
    EngineSockets,
    adopted_sockets,
    doorstep,
    endpoint_of,
    local_sockets,
    network_sockets,
)

logger = logging.getLogger("northbound")


@asynccontextmanager
async def connect_managed(
    command: EngineCommand,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready_timeout: float = READY_TIMEOUT,
    allow_engine_version: Sequence[str] = (),
    grammar_backend: Backend = "auto",
) -> AsyncIterator[ZmqEngineCore]:
    """Start vLLM as a child that says hello at `host` and `port` (0: a free one), and end it afterwards.

    Raises EngineFailure when it cannot be started or does not come up. Its end means the engine's death.
    """
    await check_interpreter(command.python)
    engines = range(command.data_parallel_size)
    with doorstep(host, port) as door, local_sockets() if command.is_local else network_sockets(host) as sockets:
        address = urlsplit(endpoint_of(door))
        process = EngineProcess(command.line(address.hostname or host, address.port or port))
        is_ready = False
        try:
            await process.start()
            handshake = Handshake(engines, sockets.addresses, allow_engine_version)
            facts = await _unless_it_ends(process, shake_hands(sockets, handshake, door, ready_timeout))
            is_ready = True
            async with _serving(sockets, engines, facts, grammar_backend) as engine:
                watch = asyncio.create_task(_tell_of_end(process, engine))
                try:
                    yield engine
                finally:
                    watch.cancel()
                    await asyncio.gather(watch, return_exceptions=True)
        finally:
            await process.stop(in_a_hurry=not is_ready)


@asynccontextmanager
async def connect_external(
    *,
    host: str,
    port: int,
    engine_count: int = 1,
    ready_timeout: float = READY_TIMEOUT,
    allow_engine_version: Sequence[str] = (),
    grammar_backend: Backend = "auto",
) -> AsyncIterator[ZmqEngineCore]:
    """Wait at `host` and `port` for engines that are started elsewhere. Raises EngineFailure when they do not come."""
    engines = range(engine_count)
    # the port that was asked for first, lest one of the sockets be given it
    with doorstep(host, port) as door, network_sockets(host) as sockets:
        logger.info("waiting for engines at %s", endpoint_of(door))
        handshake = Handshake(engines, sockets.addresses, allow_engine_version)
        facts = await shake_hands(sockets, handshake, door, ready_timeout)
        async with _serving(sockets, engines, facts, grammar_backend) as engine:
            yield engine


@asynccontextmanager
async def connect_supervised(
    *,
    input_fd: int,
    output_fd: int,
    engine_start_index: int = 0,
    engine_count: int = 1,
    ready_timeout: float = READY_TIMEOUT,
    allow_engine_version: Sequence[str] = (),
    grammar_backend: Backend = "auto",
) -> AsyncIterator[ZmqEngineCore]:
    """Take over listening descriptors, which belong to nobody else from here on, from a launcher that has told its
    engines of them. Raises EngineFailure when the engines do not come."""
    engines = range(engine_start_index, engine_start_index + engine_count)
    with adopted_sockets(input_fd, output_fd) as sockets:
        handshake = Handshake(engines, None, allow_engine_version)
        facts = await shake_hands(sockets, handshake, None, ready_timeout)
        async with _serving(sockets, engines, facts, grammar_backend) as engine:
            yield engine


@asynccontextmanager
async def _serving(
    sockets: EngineSockets, engines: Sequence[int], facts: EngineFacts, grammar_backend: Backend
) -> AsyncIterator[ZmqEngineCore]:
    engine = ZmqEngineCore(sockets, engines, facts, grammar_backend)
    engine.start()
    logger.info(
        "%s ready: vLLM %s", "1 engine is" if len(engines) == 1 else f"{len(engines)} engines are", facts.version
    )
    try:
        yield engine
    finally:
        await engine.aclose()


async def _unless_it_ends(process: EngineProcess, greeting: Awaitable[EngineFacts]) -> EngineFacts:
    handshake, end = asyncio.ensure_future(greeting), asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait((handshake, end), return_when=asyncio.FIRST_COMPLETED)
        if end.done():
            raise EngineNotStarted(f"The engine ended with exit code {end.result()} before it was ready.")
        return handshake.result()
    finally:
        handshake.cancel()
        end.cancel()
        await asyncio.gather(handshake, end, return_exceptions=True)


async def _tell_of_end(process: EngineProcess, engine: ZmqEngineCore) -> None:
    code = await process.wait()
    engine.mark_dead(f"its process ended with exit code {code}")
