"""Asking an engine for tokens, and llama.cpp itself for the same."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from adapters.outbound.llamacpp_engine.engine import LlamaCppEngine
from adapters.outbound.llamacpp_engine.model import GgufModel
from domain.generation import GenerationRequest, TokenDelta
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams

EOS = 2
OTHER_ENDS = [0, 4]

PART = 63
"""Tokens at once. With more, llama.cpp's digits depend on how many."""


def asked(
    prompt: Sequence[int], *, cache_salt: str | None = None, priority: int = 0, **sampling: Any
) -> GenerationRequest:
    given = {"max_tokens": 8, "temperature": 0.0, "eos_token_id": EOS, "stop_token_ids": OTHER_ENDS, **sampling}
    return GenerationRequest(
        request_id="r",
        prompt_token_ids=list(prompt),
        sampling=SamplingParams(**given),
        cache_salt=cache_salt,
        priority=priority,
    )


async def answer(engine: LlamaCppEngine, request: GenerationRequest) -> list[TokenDelta]:
    stream = await engine.submit(request)
    try:
        return [delta async for delta in stream]
    finally:
        await stream.aclose()


async def tokens(engine: LlamaCppEngine, prompt: Sequence[int], **sampling: Any) -> list[int]:
    return ids_of(await answer(engine, asked(prompt, **sampling)))


def ids_of(deltas: Sequence[TokenDelta]) -> list[int]:
    return [token_id for delta in deltas for token_id in delta.token_ids]


def rows_of(deltas: Sequence[TokenDelta]) -> list[LogprobColumns]:
    return [delta.logprobs for delta in deltas if delta.logprobs is not None]


class Bare:
    """llama.cpp alone, a sequence at a time, by the calls that its own examples make."""

    def __init__(self, model: GgufModel) -> None:
        library = model.library
        params = library.LlamaContextParams()
        params.n_ctx = params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = 2
        self._context = library.LlamaContext(model.native, params, verbose=False)
        self._batch = library.LlamaBatch(n_tokens=512, embd=0, n_seq_max=1, verbose=False)
        self._greedy = library.LlamaSampler()
        self._greedy.add_greedy()
        self._vocab = model.vocab

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        self._context.memory_seq_rm(0, 0, -1)
        output: list[int] = []
        for start in range(0, len(prompt) - 1, PART):
            self._decode(prompt[start : min(start + PART, len(prompt) - 1)], start)
        pending = list(prompt[-1:])
        for _ in range(count):
            self._decode(pending, len(prompt) + len(output) - len(pending))
            output.append(self._greedy.sample(self._context, len(pending) - 1))
            pending = output[-1:]
            if self._vocab.is_eog(output[-1]):
                break
        return output

    def logprobs(self, token_ids: Sequence[int]) -> list[list[float]]:
        """Behind each token, of the whole vocabulary, in double precision."""
        self._context.memory_seq_rm(0, 0, -1)
        rows = []
        for start in range(0, len(token_ids), PART):
            part = token_ids[start : start + PART]
            self._decode(part, start)
            rows += [np.array(self._context.get_logits_ith(index)) for index in range(len(part))]
        return [(row - row.max() - np.log(np.exp(row - row.max()).sum())).tolist() for row in rows]

    def close(self) -> None:
        self._context.close()

    def _decode(self, token_ids: Sequence[int], start: int) -> None:
        self._batch.clear()
        for index, token_id in enumerate(token_ids):
            self._batch.add(token_id, start + index, [0], True)
        self._context.decode(self._batch)
