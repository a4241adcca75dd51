"""The whole application over an engine that does what the test says."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from litestar import Litestar
from litestar.types import ASGIApp

from adapters.bootstrap.app import DEFAULTS, build_app
from adapters.bootstrap.container import Container
from adapters.inbound.cli.settings import HttpSettings
from adapters.inbound.http.body import BodyLimit
from adapters.inbound.http.sse import SilenceLimit
from adapters.inbound.http.vllm.tokenize.routes import TokenizerConfiguration
from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE, ByteTokenizer
from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from application.ports.chat_renderer import ChatRenderer
from application.ports.engine import EngineCore
from application.ports.tokenizer import Tokenizer

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
ENDPOINTS = (CHAT, COMPLETIONS)
by_endpoint = pytest.mark.parametrize(
    "path", [pytest.param(CHAT, id="chat"), pytest.param(COMPLETIONS, id="completions")]
)
"""Runs a test for each endpoint, as its `path`."""

JSON = {"content-type": "application/json"}


def container(
    engine: EngineCore,
    *,
    flag: bool = False,
    options: ServerOptions | None = None,
    tokenizer: Tokenizer | None = None,
    chat_renderer: ChatRenderer | None = None,
    vocab_size: int = VOCAB_SIZE,
    names: Sequence[str] = ("m",),
    max_logprobs: int = 20,
    max_output_tokens: int | None = None,
    body_limit: int = 32 << 20,
    silence_limit: float = 0,
    defaults: ModelDefaults | None = None,
    tokenizer_configuration: dict[str, Any] | None = None,
) -> Container:
    """`flag` is the server's --return-tokens-as-token-ids; `options` are all that it answers by, in its place."""
    return Container(
        engine=engine,
        tokenizer=tokenizer or ByteTokenizer(),
        chat_renderer=chat_renderer or PlainChat(),
        options=options or ServerOptions(default_return_tokens_as_token_ids=flag),
        defaults=defaults or ModelDefaults(eos_token_id=EOS_TOKEN_ID),
        limits=ModelLimits(vocab_size=vocab_size, max_logprobs=max_logprobs, max_output_tokens=max_output_tokens),
        names=list(names),
        root="models/m",
        tokenizer_configuration=TokenizerConfiguration(tokenizer_configuration or {}),
        body_limit=BodyLimit(body_limit),
        silence_limit=SilenceLimit(silence_limit),
    )


def application(engine: EngineCore, *, settings: HttpSettings = DEFAULTS, **wires: Any) -> Litestar:
    """Of a `container`, without what stands before its routes."""
    return build_app(container(engine, **wires), settings)


@asynccontextmanager
async def client_of(app: ASGIApp) -> AsyncIterator[httpx.AsyncClient]:
    """In process, without sockets. Whatever the application raises, the test raises."""
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]  # it spells the same protocol in looser types
    async with httpx.AsyncClient(transport=transport, base_url="http://in-process") as client:
        yield client


async def post(app: ASGIApp, path: str, body: dict[str, Any] | bytes, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client_of(app) as client:
        return await client.post(path, content=content, headers=JSON | headers)


async def get(app: ASGIApp, path: str, **headers: str) -> httpx.Response:
    async with client_of(app) as client:
        return await client.get(path, headers=headers)


def question(path: str, text: str = "hi", **fields: Any) -> dict[str, Any]:
    """The smallest request that an endpoint takes, and `fields`."""
    asked: dict[str, Any] = (
        {"prompt": text} if path == COMPLETIONS else {"messages": [{"role": "user", "content": text}]}
    )
    return asked | fields


def with_logprobs(path: str, alternatives: int) -> dict[str, Any]:
    """The fields that ask an endpoint for rows with so many alternatives."""
    return {"logprobs": alternatives} if path == COMPLETIONS else {"logprobs": True, "top_logprobs": alternatives}


async def counted(app: Litestar, metric: str = "vllm:request_success_total") -> dict[str, float]:
    """What GET /metrics tells of a metric: by the reason of finishing where there is one, only what is not 0."""
    counts: dict[str, float] = {}
    for line in (await get(app, "/metrics")).text.splitlines():
        name, _, rest = line.partition("{")
        labels, _, value = rest.rpartition("} ")
        if name == metric and float(value):
            reason = next((label for label in labels.split(",") if label.startswith("finished_reason")), "")
            counts[reason.partition("=")[2].strip('"')] = float(value)
    return counts
