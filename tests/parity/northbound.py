"""Northbound in this process, as the command line makes it, over an engine that steps whenever all has been sent."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from litestar.types import ASGIApp

from adapters.bootstrap.app import build_server_app
from adapters.bootstrap.engines import OpenEngine
from adapters.bootstrap.models import load_model
from adapters.bootstrap.serving import build_container
from adapters.inbound.cli.parse import parse
from adapters.inbound.cli.settings import ServeSettings
from adapters.outbound.vllm_engine.client import ZmqEngineCore
from adapters.outbound.vllm_engine.emulated_engine import Message
from adapters.outbound.vllm_engine.handshake import EngineFacts
from adapters.outbound.vllm_engine.transport import EngineSockets, OnInput, OnLost, OnOutput
from tests.http.serving import client_of
from tests.parity.answers import Answer, read_answer
from tests.parity.case import Case
from tests.parity.engine import MAX_MODEL_LEN, VERSION, RememberingEngine
from tests.parity.servers import flags

TURNS = 40
"""Rounds of the event loop, in which whatever an engine step set going comes to rest."""


class Lockstep(EngineSockets):
    """In place of sockets, an engine in this process. It steps once whoever waits for the last step has read it."""

    def __init__(self, engine: RememberingEngine) -> None:
        self._engine = engine
        self._sent: list[Message] = []
        self._stepping: asyncio.Task[None] | None = None

    def watch(self, on_input: OnInput, on_lost: OnLost) -> None:
        """Nothing comes there, and nothing is lost."""

    def read_outputs(self, on_output: OnOutput) -> None:
        self._on_output = on_output

    def send(self, identity: bytes, kind: bytes, message: bytes) -> None:
        self._sent += self._engine.receive(kind, message, time.monotonic())
        if self._stepping is None or self._stepping.done():
            self._stepping = asyncio.create_task(self._step())

    def stop_reading(self) -> None:
        """Nobody else steps."""

    async def _step(self) -> None:
        while self._sent or self._engine.has_work:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            sent, self._sent = self._sent, []
            for _, frames in sent + self._engine.step(time.monotonic()):
                self._on_output(frames)


class Northbound:
    """One server. It is asked one case at a time."""

    def __init__(self, app: ASGIApp, client: httpx.AsyncClient, engine: RememberingEngine) -> None:
        self._app = app
        self._client = client
        self._engine = engine

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self._client.post(path, json=body)

    async def answer(self, case: Case) -> Answer:
        self._engine.asked.clear()
        reply = await self._client.post(case.path, json=case.body, headers=case.headers)
        return read_answer(reply, self._engine.asked)


@asynccontextmanager
async def northbound(server: str, model: Path) -> AsyncIterator[Northbound]:
    settings = parse(["serve", str(model), *flags(server)], {})
    assert isinstance(settings, ServeSettings)
    loaded = load_model(settings.model)
    engine = RememberingEngine(loaded.limits.vocab_size)
    core = ZmqEngineCore(Lockstep(engine), [0], EngineFacts(VERSION, MAX_MODEL_LEN))
    core.start()
    app = build_server_app(build_container(settings, loaded, OpenEngine(core, core, core.died)), settings.http)
    async with client_of(app) as client:
        yield Northbound(app, client, engine)
    await core.aclose()
