"""Generations without a model: all of one is a function of its prompt's token ids, its seed and the folder of its
adapter.

At each position the whole vocabulary is ranked in closed form: the id of rank r is an affine function of r modulo the
vocabulary, a bijection, as the step is coprime to it. Since the offset is free, any token can be given any rank: first
the token and its rank are chosen, then the ranking that has it there. With the multiples of the step laid out twice in
a table, the ids of the ranks 1 to k are one slice of it, so k may be the whole vocabulary.

Logprobs depend on the rank alone, Zipf's law: rank r has a probability proportional to 1 / r.
"""

import math
from array import array
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b
from pathlib import PurePath
from typing import Final

from adapters.outbound.mock_engine.words import ByteWords
from domain.errors import RequestError
from domain.generation import FinishReason, GenerationRequest, StopReason, TokenDelta
from domain.logprobs import WHOLE_VOCABULARY, LogprobColumns
from domain.lora import LoraAdapter

STEPS: Final = 4
"""Different rankings of one offset, so that a token is not always beside the same alternatives."""

WORDS: Final = 1 << 32
"""Where the choice of words draws from, beyond the positions of tokens."""

GOLDEN: Final = 0x9E3779B97F4A7C15
MASK: Final = 0xFFFFFFFFFFFFFFFF


class CannotConstrain(RequestError):
    """The output is to have a form, which words drawn without looking at it have not."""


class DeterministicModel:
    """What mock engines generate with. `start` begins one generation."""

    def __init__(self, vocab_size: int, *, byte_vocabulary: bool = False, max_model_len: int = 8192) -> None:
        """With a `byte_vocabulary`, where the ids 0 to 255 are bytes, answers are words and have an end; else tokens
        are arbitrary ids, and only what the request says ends them."""
        self.vocab_size = vocab_size
        self.byte_vocabulary = byte_vocabulary
        self.max_model_len = max_model_len
        self.scorer = Scorer(vocab_size)

    def start(self, request: GenerationRequest) -> "DeterministicGeneration":
        """Raises CannotConstrain."""
        structured = request.sampling.structured_outputs
        if structured is not None:
            raise CannotConstrain(f"{structured.param} is not supported by the mock engine.", structured.param)
        return DeterministicGeneration(self, request)


class Scorer:
    """The ranked vocabulary of any position."""

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size
        self._tables = _tables(vocab_size)
        self._logprobs = _zipf(vocab_size)

    def columns(self, placed: Sequence[tuple[int, int, int]], alternatives: int) -> LogprobColumns:
        """One row for each (token id, its rank, which ranking): the token, then the ids of the ranks 1 to
        `alternatives`, which is at most the vocabulary, or -1 for all of it."""
        count = self._vocab_size if alternatives == WHOLE_VOCABULARY else alternatives
        logprobs = self._logprobs
        top = logprobs[:count]
        ids: list[int] = []
        values: list[float] = []
        for token_id, rank, ranking in placed:
            inverse, multiples = self._tables[ranking % STEPS]
            start = (token_id * inverse - rank + 1) % self._vocab_size
            ids.append(token_id)
            ids += multiples[start : start + count]
            values.append(logprobs[rank - 1])
            values += top
        return LogprobColumns(count + 1, ids, values, [rank for _, rank, _ in placed])

    def columns_of(self, placed: Sequence[tuple[int, int, int]], scored_ids: Sequence[int]) -> LogprobColumns:
        """The same rows with `scored_ids` in place of the ranks' ids, in their order."""
        ids: list[int] = []
        values: list[float] = []
        for token_id, rank, ranking in placed:
            inverse, _ = self._tables[ranking % STEPS]
            start = (token_id * inverse - rank + 1) % self._vocab_size
            ids += [token_id, *scored_ids]
            values.append(self._logprobs[rank - 1])
            values += [self._logprobs[(scored * inverse - start) % self._vocab_size] for scored in scored_ids]
        return LogprobColumns(len(scored_ids) + 1, ids, values, [rank for _, rank, _ in placed])


class DeterministicGeneration:
    """One request being answered."""

    def __init__(self, model: DeterministicModel, request: GenerationRequest) -> None:
        sampling = request.sampling
        prompt = request.prompt_token_ids
        self._model = model
        self._prompt = prompt
        self._sampling = sampling
        self._key = _key(prompt, sampling.seed, request.adapter)
        self._words = ByteWords(lambda index: self._draw(WORDS + index)) if model.byte_vocabulary else None
        self._eos = None if sampling.ignore_eos else sampling.eos_token_id
        self._stop = frozenset(sampling.stop_token_ids)
        room = model.max_model_len - len(prompt)
        self._limit = room if sampling.max_tokens is None else min(room, sampling.max_tokens)
        self._count = 0

    def step(self, tokens: int, alternatives: int | None) -> TokenDelta:
        """The next `tokens`, or fewer at the end; with scores of as many alternatives unless that is None.

        Not to be called again once a finish reason came.
        """
        first = self._count == 0
        placed: list[tuple[int, int, int]] = []
        finish: tuple[FinishReason, StopReason | None] | None = None
        while finish is None and len(placed) < tokens:
            draw = self._draw(self._count)
            token_id = self._choose(draw)
            placed.append((token_id, _rank(draw, self._model.vocab_size), draw >> 8))
            self._count += 1
            finish = self._finish(token_id)
        finish_reason, stop_reason = finish or (None, None)
        return TokenDelta(
            [token_id for token_id, _, _ in placed],
            None if alternatives is None else self._columns(placed, alternatives),
            self._prompt_columns() if first else None,
            finish_reason,
            stop_reason,
            0 if first else None,
        )

    def _choose(self, draw: int) -> int:
        if self._words is None:
            return (draw >> 16) % self._model.vocab_size
        if self._eos is not None and self._count >= self._sampling.min_tokens and self._words.may_end:
            return self._eos
        return self._words.next_byte()

    def _finish(self, token_id: int) -> tuple[FinishReason, StopReason | None] | None:
        # Same as vLLM: nothing stops before min_tokens, and a stop wins over the length.
        if self._count > self._sampling.min_tokens:
            if token_id == self._eos:
                return FinishReason.STOP, None
            if token_id in self._stop:
                return FinishReason.STOP, token_id
        return (FinishReason.LENGTH, None) if self._count >= self._limit else None

    def _columns(self, placed: Sequence[tuple[int, int, int]], alternatives: int) -> LogprobColumns:
        scored_ids = self._sampling.logprob_token_ids
        if scored_ids is None:
            return self._model.scorer.columns(placed, alternatives)
        return self._model.scorer.columns_of(placed, scored_ids)

    def _prompt_columns(self) -> LogprobColumns | None:
        alternatives = self._sampling.prompt_logprobs
        if alternatives is None:
            return None
        placed = []
        for position, token_id in enumerate(self._prompt[1:], start=1):
            draw = self._draw(-position)
            placed.append((token_id, _rank(draw, self._model.vocab_size), draw >> 8))
        return self._model.scorer.columns(placed, alternatives)

    def _draw(self, index: int) -> int:
        """64 bits for a position: output from 0 on, prompt below."""
        bits = (self._key + index * GOLDEN) & MASK
        bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
        bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
        return bits ^ bits >> 31


def _rank(draw: int, vocab_size: int) -> int:
    """Mostly the first, else one of the first eight."""
    return 1 if draw & 3 else min((draw >> 2 & 7) + 1, vocab_size)


def _key(prompt_token_ids: Sequence[int], seed: int | None, adapter: LoraAdapter | None) -> int:
    content = array("q", prompt_token_ids).tobytes() + str(seed).encode()
    if adapter is not None:
        content += PurePath(adapter.path).name.encode()  # its weights, wherever they are
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


@cache
def _tables(vocab_size: int) -> list[tuple[int, list[int]]]:
    """For each ranking: the inverse of its step, and two rounds of the step's multiples."""
    tables: list[tuple[int, list[int]]] = []
    step = int(vocab_size * (math.sqrt(5) - 1) / 2)
    while len(tables) < STEPS:
        step += 1
        if math.gcd(step, vocab_size) == 1:
            multiples = [step * index % vocab_size for index in range(vocab_size)]
            tables.append((pow(step, -1, vocab_size), multiples + multiples))
    return tables


@cache
def _zipf(vocab_size: int) -> list[float]:
    """The logprob of each rank, in single precision."""
    normaliser = math.log(math.fsum(1 / rank for rank in range(1, vocab_size + 1)))
    return array("f", [-math.log(rank) - normaliser for rank in range(1, vocab_size + 1)]).tolist()
