"""From a model to a server, and back to an exit status."""

import asyncio
import logging
import socket
import sys
from contextlib import AsyncExitStack
from typing import Any, Final

import uvloop
from dependency_injector import providers
from litestar.types import ASGIApp

from adapters.bootstrap.addresses import address_of, listen
from adapters.bootstrap.app import build_server_app
from adapters.bootstrap.container import Container
from adapters.bootstrap.engines import OpenEngine, open_engine
from adapters.bootstrap.example import example_request
from adapters.bootstrap.http_server import HttpServer
from adapters.bootstrap.lora_modules import load_modules
from adapters.bootstrap.models import Model
from adapters.bootstrap.settling import settle
from adapters.bootstrap.starting import Settings, runs_model
from adapters.bootstrap.stopping import STOPPING
from adapters.inbound.cli.settings import RenderSettings, ServeSettings, server_options
from adapters.inbound.http.body import BodyLimit
from adapters.inbound.http.sse import SilenceLimit
from adapters.inbound.http.vllm.tokenize.routes import TokenizerConfiguration

logger = logging.getLogger("northbound")

SWITCH_S: Final = 0.001
"""How long a thread that works beside the event loop may keep the interpreter from it."""


def serve(settings: Settings, model: Model, bound: socket.socket) -> int:
    """Serve until told to stop, which is exit status 0, or until an engine that was started here dies, which is 1.

    Raises EngineFailure, ModuleNotLoaded."""
    sys.setswitchinterval(SWITCH_S)
    return uvloop.run(_serve(settings, model, bound))


async def _serve(settings: Settings, model: Model, bound: socket.socket) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOPPING:
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        opening = asyncio.ensure_future(_open(stack, settings, model))
        if not await _finished_first(opening, stop):
            return 0
        engine, container = opening.result()
        return await _serve_until(stop, settings, container, engine, bound)


async def _open(stack: AsyncExitStack, settings: Settings, model: Model) -> tuple[OpenEngine, Container]:
    """An engine with its adapters, and everything around it."""
    engine = await stack.enter_async_context(open_engine(settings, model))
    container = build_container(settings, model, engine)
    if not isinstance(settings, RenderSettings):
        await load_modules(
            container.lora_adapters(), settings.lora.lora_modules, settings.handshake.engine_ready_timeout_s
        )
    return engine, container


async def _serve_until(
    stop: asyncio.Event, settings: Settings, container: Container, engine: OpenEngine, bound: socket.socket
) -> int:
    server = HttpServer(
        _app(container, settings),
        bound,
        keep_alive_s=settings.http.http_timeout_keep_alive,
        drain_s=settings.http.shutdown_timeout,
    )
    container.tokenizer().encode("", add_special_tokens=False)  # which waits for what is still made of it
    settle()
    listen(bound)
    serving = asyncio.ensure_future(server.serve())
    logger.info("serving %s at %s", ", ".join(settings.model.served_model_names), address_of(bound))
    if runs_model(settings) and (example := example_request(settings.http, bound)):
        logger.info("try it: %s", example)
    # an engine that somebody else started is somebody else's to end: until then /health says what is the matter
    ends_with_engine = isinstance(settings, ServeSettings) and settings.owns_engine
    ends = [asyncio.ensure_future(stop.wait())]
    if ends_with_engine:
        ends.append(asyncio.ensure_future(engine.died.wait()))
    await asyncio.wait((serving, *ends), return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    server.stop()
    await asyncio.wait((serving,), timeout=settings.http.shutdown_timeout)
    await engine.core.aclose()  # what still runs is aborted, and its client told
    await serving
    return 1 if ends_with_engine and engine.died.is_set() and not stop.is_set() else 0


def _app(container: Container, settings: Settings) -> ASGIApp:
    if isinstance(settings, RenderSettings):
        return build_server_app(container, settings.http, generates=False)
    return build_server_app(container, settings.http, updates_lora=settings.lora.allows_updating)


def build_container(settings: Settings, model: Model, engine: OpenEngine) -> Container:
    """Everything wired for these settings."""
    return Container(
        engine=providers.Object(engine.core),
        lora_loader=providers.Object(engine.lora),
        tokenizer=providers.Object(model.tokenizer),
        chat_renderer=providers.Object(model.chat_renderer),
        options=providers.Object(server_options(settings)),
        defaults=providers.Object(model.defaults),
        limits=providers.Object(model.limits),
        names=providers.Object(model.names),
        root=providers.Object(model.root),
        tokenizer_configuration=providers.Object(TokenizerConfiguration(model.tokenizer_configuration)),
        body_limit=providers.Object(BodyLimit(settings.http.http_max_request_body_size)),
        silence_limit=providers.Object(SilenceLimit(settings.http.sse_keep_alive_interval)),
    )


async def _finished_first(work: "asyncio.Future[Any]", stop: asyncio.Event) -> bool:
    """Whether `work` came to its end before `stop` was set; else it is cancelled."""
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not work.done():
        work.cancel()
        await asyncio.wait((work,))
        return False
    return True
