"""The HTTP application over a container."""

from litestar import Litestar
from litestar.config.cors import CORSConfig
from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

from adapters.bootstrap.container import Container
from adapters.inbound.cli.settings import HttpSettings
from adapters.inbound.http.body import BodyLimit
from adapters.inbound.http.door import guarded, with_request_ids, without_prefix
from adapters.inbound.http.errors import EXCEPTION_HANDLERS
from adapters.inbound.http.openai.chat.routes import chat_completions
from adapters.inbound.http.openai.completions.routes import completions
from adapters.inbound.http.openai.exchange import TokenDisplays
from adapters.inbound.http.openai.models import list_models
from adapters.inbound.http.openapi.routes import ApiDocument, docs, openapi_json, redoc
from adapters.inbound.http.ops.health import health
from adapters.inbound.http.ops.metrics import Exposition, metrics
from adapters.inbound.http.ops.version import version
from adapters.inbound.http.sse import SilenceLimit
from adapters.inbound.http.vllm.derender.routes import derender_chat, derender_completions
from adapters.inbound.http.vllm.gate import closed
from adapters.inbound.http.vllm.generate.routes import abort_requests, abort_requests_unguarded, generate
from adapters.inbound.http.vllm.lora import load_lora_adapter, unload_lora_adapter
from adapters.inbound.http.vllm.render.routes import render_chat, render_completions
from adapters.inbound.http.vllm.tokenize.routes import (
    TokenizerConfiguration,
    detokenize,
    tokenize,
    tokenizer_info,
)
from application.model import ModelDefaults
from application.ports.engine import EngineCore
from application.services.chat import CompleteChat
from application.services.completions import CompleteText
from application.services.derender import Derender
from application.services.generate import GenerateTokens
from application.services.lora import LoraAdapters
from application.services.models import ServedModels
from application.services.prepare import Prepare
from application.services.running import Running
from application.services.tokenize import Tokenize

DEFAULTS = HttpSettings()
ENDS: list[HTTPRouteHandler] = [render_chat, render_completions, derender_chat, derender_completions]
"""Of a generation by tokens."""


def build_server_app(
    container: Container, settings: HttpSettings, *, updates_lora: bool = False, generates: bool = True
) -> ASGIApp:
    """The application behind its door: who may come in, and from where. Same as vLLM: preflights need no key, and who
    is turned away is told no origin."""
    app: ASGIApp = build_app(container, settings, updates_lora=updates_lora, generates=generates)
    if settings.api_key:
        app = guarded(app, settings.api_key)
    if settings.root_path:
        app = without_prefix(app, settings.root_path)
    if settings.enable_request_id_headers:
        app = with_request_ids(app)
    return app


def _cors(settings: HttpSettings) -> CORSConfig | None:
    if not settings.allowed_origins:
        return None
    return CORSConfig(
        allow_origins=list(settings.allowed_origins),
        allow_methods=list(settings.allowed_methods),  # type: ignore[arg-type]  # it knows them by name
        allow_headers=list(settings.allowed_headers),
        allow_credentials=settings.allow_credentials,
    )


def _handlers(settings: HttpSettings, updates_lora: bool) -> list[HTTPRouteHandler]:
    handlers = [chat_completions, completions, metrics, *_everywhere(settings)]
    if updates_lora:
        handlers += [load_lora_adapter, unload_lora_adapter]
    if settings.serves_scale_out:
        handlers += [*ENDS, generate, abort_requests]
    else:
        handlers.append(closed)
    if settings.tokens_only:
        handlers.append(abort_requests_unguarded)
    return handlers


def _without_engine(settings: HttpSettings) -> list[HTTPRouteHandler]:
    return [*ENDS, *_everywhere(settings)]


def _everywhere(settings: HttpSettings) -> list[HTTPRouteHandler]:
    handlers = [list_models, tokenize, detokenize, health, version]
    if settings.enable_tokenizer_info_endpoint:
        handlers.append(tokenizer_info)
    if not settings.disable_fastapi_docs:
        handlers += [openapi_json, docs, redoc]
    return handlers


def build_app(
    container: Container, settings: HttpSettings = DEFAULTS, *, updates_lora: bool = False, generates: bool = True
) -> Litestar:
    """Each dependency is a plain function, so that an override in the container holds. Each is resolved once here,
    so that a missing wire is a failed start. With `updates_lora`, clients may load and unload adapters;
    unless it `generates`, there is no engine, and nothing that needs one."""
    handlers = _handlers(settings, updates_lora) if generates else _without_engine(settings)
    served = [path for handler in handlers if handler is not closed for path in handler.paths]
    document = ApiDocument(served, settings.root_path, asks_for_key=bool(settings.api_key))

    def complete_text() -> CompleteText:
        return container.complete_text()

    def complete_chat() -> CompleteChat:
        return container.complete_chat()

    def generate_tokens() -> GenerateTokens:
        return container.generate_tokens()

    def derender() -> Derender:
        return container.derender()

    def prepare() -> Prepare:
        return container.prepare()

    def running() -> Running:
        return container.running()

    def tokenizing() -> Tokenize:
        return container.tokenizing()

    def tokenizer_configuration() -> TokenizerConfiguration:
        return container.tokenizer_configuration()

    def models() -> ServedModels:
        return container.models()

    def lora_adapters() -> LoraAdapters:
        return container.lora_adapters()

    def defaults() -> ModelDefaults:
        return container.defaults()

    def displays() -> TokenDisplays:
        return container.displays()

    def engine() -> EngineCore:
        return container.engine()

    def exposition() -> Exposition:
        return container.metrics()

    def body_limit() -> BodyLimit:
        return container.body_limit()

    def silence_limit() -> SilenceLimit:
        return container.silence_limit()

    def api_document() -> ApiDocument:
        return document

    wires = (
        complete_text,
        complete_chat,
        generate_tokens,
        derender,
        prepare,
        running,
        tokenizing,
        tokenizer_configuration,
        models,
        lora_adapters,
        defaults,
        displays,
        engine,
        exposition,
        body_limit,
        silence_limit,
        api_document,
    )
    for wire in wires:
        wire()
    return Litestar(
        handlers,
        dependencies={wire.__name__: Provide(wire, sync_to_thread=False) for wire in wires},
        exception_handlers=EXCEPTION_HANDLERS,
        cors_config=_cors(settings),
        openapi_config=None,
        logging_config=None,
    )
