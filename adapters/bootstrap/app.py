"""The HTTP application over a container."""

from litestar import Litestar
from litestar.config.cors import CORSConfig
from litestar.di import Provide
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
from adapters.inbound.http.vllm.lora import load_lora_adapter, unload_lora_adapter
from application.model import ModelDefaults
from application.ports.engine import EngineCore
from application.services.adapters import Adapters
from application.services.chat import CompleteChat
from application.services.completions import CompleteText
from application.services.models import ServedModels


def build_server_app(container: Container, settings: HttpSettings, *, updates_adapters: bool = False) -> ASGIApp:
    """The application behind its door: who may come in, and from where. Same as vLLM: preflights need no key, and who
    is turned away is told no origin."""
    document = ApiDocument(settings.root_path, asks_for_key=bool(settings.api_key), updates_adapters=updates_adapters)
    app: ASGIApp = build_app(
        container,
        _cors(settings),
        None if settings.disable_fastapi_docs else document,
        updates_adapters=updates_adapters,
    )
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


def build_app(
    container: Container,
    cors: CORSConfig | None = None,
    document: ApiDocument | None = None,
    *,
    updates_adapters: bool = False,
) -> Litestar:
    """Each dependency is a plain function, so that an override in the container holds. Each is resolved once here,
    so that a missing wire is a failed start. None as `document`: it is not shown. With `updates_adapters`, clients may
    load and unload adapters."""

    def complete_text() -> CompleteText:
        return container.complete_text()

    def complete_chat() -> CompleteChat:
        return container.complete_chat()

    def models() -> ServedModels:
        return container.models()

    def adapters() -> Adapters:
        return container.adapters()

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

    def api_document() -> ApiDocument | None:
        return document

    wires = (
        *(complete_text, complete_chat, models, adapters, defaults, displays, engine),
        *(exposition, body_limit, silence_limit, api_document),
    )
    for wire in wires:
        wire()
    routes = [chat_completions, completions, list_models, health, version, metrics]
    if updates_adapters:
        routes += [load_lora_adapter, unload_lora_adapter]
    return Litestar(
        routes if document is None else [*routes, openapi_json, docs, redoc],
        dependencies={wire.__name__: Provide(wire, sync_to_thread=False) for wire in wires},
        exception_handlers=EXCEPTION_HANDLERS,
        cors_config=cors,
        openapi_config=None,
        logging_config=None,
    )
