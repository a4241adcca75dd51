"""A mock engine whose loading of adapters is in the hand of a test."""

import asyncio

from adapters.outbound.byte_tokenizer.tokenizer import VOCAB_SIZE
from adapters.outbound.mock_engine.deterministic import DeterministicGeneration, DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from domain.generation import GenerationRequest
from domain.lora import LoraAdapter

MODEL = DeterministicModel(VOCAB_SIZE, byte_vocabulary=True)


class LoadingEngine(MockEngine):
    """Remembers what it was to load, and what it was asked. Each load waits for `gate`, and then raises the next of
    `failures` if there is one."""

    def __init__(self, *failures: Exception) -> None:
        super().__init__(self._begin)
        self.failures = list(failures)
        self.gate = asyncio.Event()
        self.gate.set()
        self.loads: list[tuple[LoraAdapter, bool]] = []
        """What was to be loaded, and whether in place."""
        self.requests: list[GenerationRequest] = []

    async def load_adapter(self, adapter: LoraAdapter, *, in_place: bool = False) -> None:
        self.loads.append((adapter, in_place))
        await self.gate.wait()
        if self.failures:
            raise self.failures.pop(0)
        await super().load_adapter(adapter, in_place=in_place)

    def _begin(self, request: GenerationRequest) -> DeterministicGeneration:
        self.requests.append(request)
        return MODEL.start(request)
