"""Which engine a command line means, opened and closed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from msgspec import Struct

from adapters.bootstrap.models import Model
from adapters.inbound.cli.settings import FrontendSettings, MockEngineSettings, RenderSettings, ServeSettings
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from adapters.outbound.no_engine.engine import NoEngine
from adapters.outbound.vllm_engine.client import ZmqEngineCore
from adapters.outbound.vllm_engine.connect import connect_external, connect_managed, connect_supervised
from adapters.outbound.vllm_engine.emulator import EmulatorSettings, run_emulator
from adapters.outbound.vllm_engine.process import EngineCommand
from application.ports.engine import EngineCore
from application.ports.lora import LoraLoader
from domain.errors import EngineFailure

logger = logging.getLogger("northbound")

MOCK_MAX_MODEL_LEN = 8192


class OpenEngine(Struct, frozen=True):
    """An engine that takes requests, and a word of its end."""

    core: EngineCore
    lora: LoraLoader
    died: asyncio.Event


@asynccontextmanager
async def open_engine(
    settings: ServeSettings | RenderSettings | FrontendSettings, model: Model
) -> AsyncIterator[OpenEngine]:
    """Raises EngineFailure when it does not come up. Opening may take minutes and may be cancelled at any time."""
    if isinstance(settings, ServeSettings) and model.weights is not None:
        # with it comes numpy, which nothing else here needs
        from adapters.outbound.llamacpp_engine.engine import open_llamacpp

        chosen = {} if settings.max_num_seqs is None else {"max_num_seqs": settings.max_num_seqs}
        async with open_llamacpp(model.weights, max_model_len=settings.model.max_model_len, **chosen) as llamacpp:
            logger.info("%s", llamacpp.description)
            yield OpenEngine(llamacpp, llamacpp, llamacpp.died)
    elif isinstance(settings, ServeSettings) and settings.engine == "mock":
        max_model_len = settings.model.max_model_len or MOCK_MAX_MODEL_LEN
        generator = DeterministicModel(
            model.limits.vocab_size, byte_vocabulary=model.is_bytes, max_model_len=max_model_len
        )
        mock = MockEngine(generator.start, step_seconds=settings.mock_step_ms / 1000, max_model_len=max_model_len)
        try:
            yield OpenEngine(mock, mock, asyncio.Event())
        finally:
            await mock.aclose()
    elif isinstance(settings, RenderSettings):
        context_length = settings.model.max_model_len or model.context_length
        if context_length is None:
            raise EngineFailure(f"{model.root} does not say how long its context is: give --max-model-len.")
        none = NoEngine(context_length)
        yield OpenEngine(none, none, asyncio.Event())
    else:
        async with _connect(settings) as core:
            yield OpenEngine(core, core, core.died)


def _connect(settings: ServeSettings | FrontendSettings) -> AbstractAsyncContextManager[ZmqEngineCore]:
    timeout = settings.handshake.engine_ready_timeout_s
    versions = settings.handshake.allow_engine_version
    grammar_backend = settings.handshake.structured_outputs_backend
    if isinstance(settings, FrontendSettings):
        return connect_supervised(
            input_fd=settings.input_listener_fd,
            output_fd=settings.output_listener_fd,
            engine_start_index=settings.engine_start_index,
            engine_count=settings.engine_count,
            ready_timeout=timeout,
            allow_engine_version=versions,
            grammar_backend=grammar_backend,
        )
    host, port = settings.data_parallel_address, settings.data_parallel_rpc_port or 0
    if settings.starts_engine:
        path, *arguments = settings.engine_argv()
        command = EngineCommand(
            python=settings.python,
            model=path,
            arguments=arguments,
            data_parallel_size=settings.data_parallel_size,
            data_parallel_size_local=settings.data_parallel_size_local,
        )
        return connect_managed(
            command,
            host=host,
            port=port,
            ready_timeout=timeout,
            allow_engine_version=versions,
            grammar_backend=grammar_backend,
        )
    return connect_external(
        host=host,
        port=port,
        engine_count=settings.data_parallel_size,
        ready_timeout=timeout,
        allow_engine_version=versions,
        grammar_backend=grammar_backend,
    )


def run_mock_engine(settings: MockEngineSettings) -> int:
    """Plays an engine core until it is told to stop; gives the exit status."""
    generator = DeterministicModel(settings.vocab_size, max_model_len=settings.max_model_len)
    known = {} if settings.vllm_version is None else {"vllm_version": settings.vllm_version}
    try:
        emulated = EmulatorSettings(
            handshake_address=settings.handshake_address,
            engine_count=settings.engine_count,
            step_ms=settings.step_ms,
            tokens_per_step=settings.tokens_per_step,
            vocab_size=settings.vocab_size,
            max_model_len=settings.max_model_len,
            fail=settings.fail,
            fail_after=settings.fail_after,
            ready_delay_s=settings.ready_delay_s,
            per_request_spec_decode_metrics=settings.per_request_spec_decode_metrics,
            **known,
        )
    except ValueError as error:
        raise EngineFailure(str(error)) from None
    return run_emulator(emulated, generator.start)
