"""What chat and completions share: prepared prompts become running generations."""

from collections.abc import Sequence

from msgspec.structs import replace

from application.ports.engine import EngineCore
from application.ports.metrics import Metrics
from application.requests import TextOutput
from application.services.choices import Choices
from application.services.prepare import Prepared
from application.services.response import ResponseStage
from application.services.running import Running
from domain.detokenizer import Unread
from domain.generation import GenerationRequest


class GenerateText:
    """Starts generations."""

    def __init__(self, engine: EngineCore, stage: ResponseStage, metrics: Metrics, running: Running) -> None:
        self._engine = engine
        self._stage = stage
        self._metrics = metrics
        self._running = running

    async def __call__(self, prepared: Sequence[Prepared], output: TextOutput) -> Choices:
        """Admit `output.n` requests per prompt, and wait for the first output of any. Choices are in the order of
        prompts, those of one prompt together.

        Raises RequestError for what the engine does not take, EngineFailure when it cannot; then none is left.
        """
        choices = self._stage.choices(output)
        try:
            for prompt, request in ((one.prompt, one.request) for one in prepared):
                start = await self._stage.start(prompt, request.sampling, output)
                for child in _children(request, output.n):
                    tokens = await self._engine.submit(child)
                    self._metrics.request_started()
                    reader = self._stage.reader(start, child.sampling, output) if output.reads_tokens else Unread()
                    generation = self._stage.choice(start, reader, output, tokens, self._metrics)
                    choices.add(generation)
                    self._running.add(request.request_id, generation)
            await choices.start()
        except BaseException:
            await choices.aclose()
            raise
        return choices


def _children(request: GenerationRequest, n: int) -> list[GenerationRequest]:
    """One request per choice. Same as vLLM: each has an id, and with a seed a seed, of its own."""
    if n == 1:
        return [request]
    sampling = request.sampling
    return [
        replace(
            request,
            request_id=f"{index}_{request.request_id}",
            sampling=sampling if sampling.seed is None else replace(sampling, seed=sampling.seed + index),
        )
        for index in range(n)
    ]
