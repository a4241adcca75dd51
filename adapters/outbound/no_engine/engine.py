"""In the place of an engine, in a process that renders and derenders for engines elsewhere."""

from application.ports.engine import EngineCore, EngineUnavailable, TokenStream
from application.ports.lora import AdapterNotLoaded, LoraLoader
from domain.generation import GenerationRequest
from domain.lora import LoraAdapter


class NoEngine(EngineCore, LoraLoader):
    """Takes nothing, and does not fail: there is nothing to fail."""

    def __init__(self, max_model_len: int) -> None:
        """As the engines elsewhere have it."""
        self._max_model_len = max_model_len

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def version(self) -> str:
        return "none"

    @property
    def is_alive(self) -> bool:
        return True

    async def submit(self, request: GenerationRequest) -> TokenStream:  # noqa: ARG002 - the port's signature
        raise EngineUnavailable("This server has no engine: it renders and derenders.")

    async def load_adapter(self, adapter: LoraAdapter, *, in_place: bool = False) -> None:  # noqa: ARG002
        raise AdapterNotLoaded("This server has no engine to load adapters into.")

    async def aclose(self) -> None:
        return
