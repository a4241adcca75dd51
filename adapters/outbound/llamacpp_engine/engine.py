"""The engine port over llama.cpp in this process."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from adapters.outbound.llamacpp_engine.context import DecodingContext
from adapters.outbound.llamacpp_engine.decoding import Decoding, is_last
from adapters.outbound.llamacpp_engine.forms import grammar_of
from adapters.outbound.llamacpp_engine.library import version
from adapters.outbound.llamacpp_engine.model import GgufModel
from adapters.outbound.llamacpp_engine.scheduler import Scheduler
from adapters.outbound.llamacpp_engine.stream import LlamaCppStream
from adapters.outbound.llamacpp_engine.worker import Outcomes, Worker
from application.ports.engine import EngineCore, EngineDead, EngineUnavailable, TokenStream, check_rank
from application.ports.lora import AdapterNotLoaded, LoraLoader
from domain.errors import EngineFailure, RequestError
from domain.generation import GenerationRequest
from domain.lora import LoraAdapter
from domain.sampling import SamplingParams

PROMPT_TOKENS: Final = 63
"""Of prompts in one step, so that those who generate meanwhile do not wait long. More is no faster on a CPU, and from
64 on llama.cpp computes attention in another way: logits would depend on how prompts fall into steps."""

MAX_NUM_SEQS: Final = 4

LONGEST_BY_DEFAULT: Final = 4096
"""The memory for all of them is taken at once, and models are trained for more than a laptop has."""


class NotSupported(RequestError):
    """This engine does not do what is asked of it."""


@asynccontextmanager
async def open_llamacpp(
    model: GgufModel, *, max_model_len: int | None = None, max_num_seqs: int = MAX_NUM_SEQS
) -> AsyncIterator["LlamaCppEngine"]:
    """An engine for that many requests at a time. `max_model_len` None: what the model was trained for, within
    LONGEST_BY_DEFAULT. Raises ContextNotAvailable."""
    max_model_len = max_model_len or min(model.trained_length, LONGEST_BY_DEFAULT)
    context = await asyncio.to_thread(
        DecodingContext,
        model,
        sequences=max_num_seqs,
        length=max_model_len,
        batch_tokens=PROMPT_TOKENS + max_num_seqs,
        threads=available_threads(),
    )
    engine = LlamaCppEngine(model, context, max_model_len=max_model_len, max_num_seqs=max_num_seqs)
    try:
        yield engine
    finally:
        await engine.aclose()


def available_threads() -> int:
    """One per core that this process may use: more would wait for each other."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LlamaCppEngine(EngineCore, LoraLoader):
    """Requests are decoded together, step by step, in a thread of their own."""

    def __init__(self, model: GgufModel, context: DecodingContext, *, max_model_len: int, max_num_seqs: int) -> None:
        """Takes the context over. Of the running event loop."""
        self._max_model_len = max_model_len
        self._version = version()
        trained = "" if max_model_len == model.trained_length else f" of {model.trained_length} trained for"
        self.description = (
            f"{self._version}: {max_num_seqs} requests at a time, each of at most {max_model_len} tokens{trained}, "
            f"on {available_threads()} threads"
        )
        """For people."""
        scheduler = Scheduler(
            context, slots=max_num_seqs, prompt_tokens=PROMPT_TOKENS, reuses_prefixes=model.reuses_prefixes
        )
        self._worker = Worker(model, context, scheduler, max_model_len, self._deliver, self._die)
        self._streams: dict[Decoding, LlamaCppStream] = {}
        self._is_closed = False
        self.died = asyncio.Event()
        self.aborts = 0
        """How many requests were closed before their end."""

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def version(self) -> str:
        return self._version

    @property
    def is_alive(self) -> bool:
        return not self.died.is_set() and not self._is_closed

    async def submit(self, request: GenerationRequest) -> TokenStream:
        self._check_alive()
        check_rank(request.data_parallel_rank, 1)
        _check_supported(request.sampling)
        form = request.sampling.structured_outputs
        grammar = None if form is None else await asyncio.to_thread(grammar_of, form)
        self._check_alive()
        decoding = Decoding(request, grammar, self._max_model_len, time.monotonic())
        stream = self._streams[decoding] = LlamaCppStream(partial(self._abort, decoding))
        self._worker.submit(decoding)
        return stream

    async def load_adapter(self, adapter: LoraAdapter, *, in_place: bool = False) -> None:  # noqa: ARG002
        raise AdapterNotLoaded("LoRA adapters are not supported by the llama.cpp engine.")

    async def aclose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._fail_all(EngineUnavailable, "The server is shutting down.")
        await self._worker.aclose()

    def _check_alive(self) -> None:
        if not self.is_alive:
            raise EngineDead("The llama.cpp engine is closed.")

    def _deliver(self, outcomes: Outcomes) -> None:
        for decoding, outcome in outcomes:
            if decoding in self._streams:  # else it was closed meanwhile
                self._streams[decoding].put(outcome)
                if is_last(outcome):
                    del self._streams[decoding]

    def _abort(self, decoding: Decoding) -> None:
        self.aborts += 1
        self._streams.pop(decoding, None)
        self._worker.cancel(decoding)

    def _die(self, error: Exception) -> None:
        self.died.set()
        self._fail_all(EngineDead, f"The llama.cpp engine failed: {error}")

    def _fail_all(self, failure: type[EngineFailure], message: str) -> None:
        for stream in self._streams.values():
            stream.put(failure(message))
        self._streams.clear()


def _check_supported(sampling: SamplingParams) -> None:
    if sampling.repetition_detection is not None:
        raise _not_supported("repetition_detection")
    if sampling.extra_args:
        named = [name for name in ("kv_transfer_params", "ec_transfer_params") if name in sampling.extra_args]
        raise _not_supported(named[0] if named else "vllm_xargs")


def _not_supported(param: str) -> NotSupported:
    return NotSupported(f"{param} is not supported by the llama.cpp engine.", param)
