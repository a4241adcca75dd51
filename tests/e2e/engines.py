"""A frontend's engine client with scripted engines at the other end of real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from adapters.outbound.vllm_engine.client import ZmqEngineCore
from adapters.outbound.vllm_engine.connect import connect_external
from application.ports.engine import TokenStream
from domain.generation import GenerationRequest, TokenDelta
from domain.sampling import SamplingParams
from tests.fakes.scripted_engine_core import ScriptedEngineCore, free_port, soon
from tests.patience import PATIENCE_S


def request(request_id: str = "r", **sampling: Any) -> GenerationRequest:
    return GenerationRequest(
        request_id=request_id,
        prompt_token_ids=[1, 2, 3],
        sampling=SamplingParams(max_tokens=sampling.pop("max_tokens", 16), **sampling),
    )


@asynccontextmanager
async def connected(*cores: ScriptedEngineCore, **options: Any) -> AsyncIterator[ZmqEngineCore]:
    """All of them have shaken hands."""
    port = free_port()
    starting = [asyncio.create_task(core.start(f"tcp://127.0.0.1:{port}")) for core in cores]
    async with connect_external(host="127.0.0.1", port=port, engine_count=len(cores), **options) as engine:
        await soon(asyncio.gather(*starting))
        yield engine


async def read(stream: TokenStream) -> list[TokenDelta]:
    """All of it."""

    async def collect() -> list[TokenDelta]:
        return [delta async for delta in stream]

    return await soon(collect())


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 (nothing here can set an event)
            await asyncio.sleep(0.005)
