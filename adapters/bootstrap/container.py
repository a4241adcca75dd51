"""The composition root: the one place where every role gets its adapter."""

import time
from collections.abc import Sequence

from dependency_injector import containers, providers

from adapters.inbound.http.body import BodyLimit
from adapters.inbound.http.openai import filling
from adapters.inbound.http.openai.exchange import TokenDisplays
from adapters.inbound.http.sse import SilenceLimit
from adapters.inbound.http.vllm.tokenize.routes import TokenizerConfiguration
from adapters.outbound.prometheus.metrics import PrometheusMetrics
from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from application.ports.chat_renderer import ChatRenderer
from application.ports.engine import EngineCore
from application.ports.lora import LoraLoader
from application.ports.tokenizer import Tokenizer
from application.services.chat import CompleteChat
from application.services.completions import CompleteText
from application.services.derender import Derender
from application.services.generate import GenerateTokens
from application.services.generation import GenerateText
from application.services.lora import LoraAdapters
from application.services.models import ServedModels
from application.services.prepare import Prepare
from application.services.render import Render
from application.services.response import ResponseStage
from application.services.running import Running
from application.services.tokenize import Tokenize


class Container(containers.DeclarativeContainer):
    """Everything a server is made of. What depends on its settings is passed in; tests override what they swap."""

    engine: providers.Dependency[EngineCore] = providers.Dependency()
    """Open already."""
    lora_loader: providers.Dependency[LoraLoader] = providers.Dependency(default=engine)
    """Mostly the engine itself."""
    tokenizer: providers.Dependency[Tokenizer] = providers.Dependency()
    chat_renderer: providers.Dependency[ChatRenderer] = providers.Dependency()
    options: providers.Dependency[ServerOptions] = providers.Dependency()
    defaults: providers.Dependency[ModelDefaults] = providers.Dependency()
    limits: providers.Dependency[ModelLimits] = providers.Dependency()
    names: providers.Dependency[Sequence[str]] = providers.Dependency()
    """Served model names; answers carry the first."""
    root: providers.Dependency[str] = providers.Dependency()
    """Where the model was loaded from."""
    tokenizer_configuration: providers.Dependency[TokenizerConfiguration] = providers.Dependency(
        default=TokenizerConfiguration()
    )
    body_limit: providers.Dependency[BodyLimit] = providers.Dependency()
    silence_limit: providers.Dependency[SilenceLimit] = providers.Dependency(default=SilenceLimit(0))

    metrics = providers.Singleton(PrometheusMetrics, names.provided[0])
    render = providers.Singleton(Render, tokenizer, chat_renderer)
    tokenizing = providers.Singleton(Tokenize, render, tokenizer, limits, engine.provided.max_model_len)
    prepare = providers.Singleton(Prepare, render, defaults, limits, engine.provided.max_model_len)
    stage = providers.Singleton(ResponseStage, tokenizer, options)
    running = providers.Singleton(Running)
    generate = providers.Singleton(GenerateText, engine, stage, metrics, running)
    complete_text = providers.Singleton(CompleteText, prepare, generate)
    complete_chat = providers.Singleton(CompleteChat, prepare, generate, options)
    generate_tokens = providers.Singleton(GenerateTokens, prepare, generate, options)
    derender = providers.Singleton(Derender, prepare, stage, options, limits, engine.provided.max_model_len)
    lora_adapters = providers.Singleton(LoraAdapters, lora_loader, names)
    models = providers.Singleton(
        ServedModels, names, root, providers.Callable(lambda: int(time.time())), engine, options, lora_adapters
    )
    fill_rows = providers.Callable(filling.quickest)
    displays = providers.Singleton(TokenDisplays, tokenizer.provided.piece, fill_rows)
