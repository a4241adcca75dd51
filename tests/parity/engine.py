"""The engine behind both frontends: the emulated one, with a model that tells its prompt again, and a memory."""

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from adapters.outbound.mock_engine.deterministic import DeterministicGeneration, DeterministicModel
from adapters.outbound.vllm_engine.emulated_engine import EmulatedEngine, Faults, Message
from adapters.outbound.vllm_engine.wire import (
    ADD,
    EngineCoreOutput032,
    EngineCoreOutputs,
    EngineCoreRequest,
    FinishCode,
    decode,
    encode,
)
from domain.generation import GenerationRequest
from tests.parity.model import BEGIN, END, SPECIALS, START

MAX_MODEL_LEN = 96
VERSION = "0.32.0"

BEGIN_ID, START_ID, END_ID = map(SPECIALS.index, (BEGIN, START, END))


class Retelling(DeterministicGeneration):
    """Says the last turn of its prompt again, or all of a prompt without turns, and then that it is the end; over and
    over, if that does not end it. A seed is how many tokens into that it starts."""

    def __init__(self, model: DeterministicModel, request: GenerationRequest) -> None:
        super().__init__(model, request)
        self._story = _story(request.prompt_token_ids)
        self._next = (request.sampling.seed or 0) % len(self._story)

    def _choose(self, draw: int) -> int:
        token_id = self._story[self._next]
        self._next = (self._next + 1) % len(self._story)
        return token_id


def _story(prompt: Sequence[int]) -> list[int]:
    ends = [place for place, token_id in enumerate(prompt) if token_id == END_ID]
    starts = [place for place, token_id in enumerate(prompt) if token_id == START_ID and ends and place < ends[-1]]
    if starts:
        return [*prompt[starts[-1] + 3 : ends[-1]], END_ID]  # behind the role and a line break
    return [*(token_id for token_id in prompt if token_id != BEGIN_ID), END_ID]


class RememberingEngine(EmulatedEngine):
    """Keeps the bodies of all ADDs as they came. A form that is asked for is not kept to: that it was asked for is what
    matters here. One that is called broken does not compile."""

    def __init__(self, vocab_size: int) -> None:
        model = DeterministicModel(vocab_size, max_model_len=MAX_MODEL_LEN)
        super().__init__(
            0,
            lambda request: Retelling(model, request),
            lambda _event, _request_id: None,
            vocab_size=vocab_size,
            tokens_per_step=1,
            is_032=True,
            faults=Faults(),
        )
        self.vocab_size = vocab_size
        self.asked: list[Any] = []

    def receive(self, kind: bytes, body: bytes, now: float) -> list[Message]:
        if kind == ADD:
            self.asked.append(decode(body, list))
            request = decode(body, EngineCoreRequest)
            if "broken" in str(request.sampling_params):
                output = EngineCoreOutput032(request.request_id, (), finish_reason=FinishCode.ERROR)
                return [(request.client_index, [encode(EngineCoreOutputs(0, [output], timestamp=now))])]
            if request.sampling_params is not None:
                formless = structs.replace(request.sampling_params, structured_outputs=None)
                body = encode(structs.replace(request, sampling_params=formless))
        return super().receive(kind, body, now)
