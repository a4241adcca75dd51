"""The HTTP application over a container."""

from collections.abc import Mapping
from typing import Any

from litestar import Litestar
from litestar.config.cors import CORSConfig
from litestar.plugins import PluginProtocol
from litestar.types import ASGIApp

from adapters.bootstrap.container import Container
from adapters.inbound.cli.settings import HttpSettings
from adapters.inbound.http.door import guarded, with_request_ids, without_prefix
from adapters.inbound.http.endpoint import Endpoint
from adapters.inbound.http.errors import EXCEPTION_HANDLERS
from adapters.inbound.http.openai.chat.routes import chat_completions
from adapters.inbound.http.openai.completions.routes import completions
from adapters.inbound.http.openai.models import list_models
from adapters.inbound.http.openapi.routes import ApiDocument, docs, openapi_json, redoc
from adapters.inbound.http.ops.health import health
from adapters.inbound.http.ops.metrics import metrics
from adapters.inbound.http.ops.version import version
from adapters.inbound.http.turns import InTurns
from adapters.inbound.http.vllm.derender.routes import derender_chat, derender_completions
from adapters.inbound.http.vllm.gate import closed
from adapters.inbound.http.vllm.generate.routes import abort_requests, abort_requests_unguarded, generate
from adapters.inbound.http.vllm.lora import load_lora_adapter, unload_lora_adapter
from adapters.inbound.http.vllm.render.routes import render_chat, render_completions
from adapters.inbound.http.vllm.tokenize.routes import detokenize, tokenize, tokenizer_info

DEFAULTS = HttpSettings()
ENDS: list[Endpoint] = [render_chat, render_completions, derender_chat, derender_completions]
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
    return InTurns(app)


def _cors(settings: HttpSettings) -> CORSConfig | None:
    if not settings.allowed_origins:
        return None
    return CORSConfig(
        allow_origins=list(settings.allowed_origins),
        allow_methods=list(settings.allowed_methods),  # type: ignore[arg-type]  # it knows them by name
        allow_headers=list(settings.allowed_headers),
        allow_credentials=settings.allow_credentials,
    )


def _endpoints(settings: HttpSettings, updates_lora: bool) -> list[Endpoint]:
    endpoints = [chat_completions, completions, metrics, *_everywhere(settings)]
    if updates_lora:
        endpoints += [load_lora_adapter, unload_lora_adapter]
    if settings.serves_scale_out:
        endpoints += [*ENDS, generate, abort_requests]
    else:
        endpoints.append(closed)
    if settings.tokens_only:
        endpoints.append(abort_requests_unguarded)
    return endpoints


def _without_engine(settings: HttpSettings) -> list[Endpoint]:
    return [*ENDS, *_everywhere(settings)]


def _everywhere(settings: HttpSettings) -> list[Endpoint]:
    endpoints = [list_models, tokenize, detokenize, health, version]
    if settings.enable_tokenizer_info_endpoint:
        endpoints.append(tokenizer_info)
    if not settings.disable_fastapi_docs:
        endpoints += [openapi_json, docs, redoc]
    return endpoints


def build_app(
    container: Container, settings: HttpSettings = DEFAULTS, *, updates_lora: bool = False, generates: bool = True
) -> Litestar:
    """Every part of the server is resolved once, here, so that a missing wire is a failed start. With `updates_lora`,
    clients may load and unload adapters; unless it `generates`, there is no engine, and nothing that needs one."""
    endpoints = _endpoints(settings, updates_lora) if generates else _without_engine(settings)
    served = [path for endpoint in endpoints if endpoint is not closed for path in endpoint.paths]
    document = ApiDocument(served, settings.root_path, asks_for_key=bool(settings.api_key))
    parts = {name: part() for name, part in container.providers.items()}
    parts |= {"exposition": container.metrics(), "api_document": document}
    app = _Litestar(
        [endpoint.handler(parts) for endpoint in endpoints],
        exception_handlers=EXCEPTION_HANDLERS,
        cors_config=_cors(settings),
        openapi_config=None,
        logging_config=None,
    )
    if app.cors_config is None:  # which adds to every answer
        app.straight = {(end.method, path): end.app(parts) for end in endpoints for path in end.paths}
    return app


class _Litestar(Litestar):
    straight: Mapping[tuple[str, str], ASGIApp] = {}
    """Endpoints by their methods and paths. Nearly every request spells its path like this, and need not be routed,
    which costs a tenth of what is done for a short one. Litestar knows other spellings, and what else to say."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        app = self.straight.get((scope.get("method", ""), scope.get("path", "")))
        await (app or super().__call__)(scope, receive, send)

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        """None: they are for bodies of pydantic's and attrs' classes, which there are not, and import both."""
        return plugins
