"""The state of all sequences that are being decoded, and one step of all of them together."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adapters.outbound.llamacpp_engine.model import GgufModel
from domain.errors import EngineFailure

Logits = NDArray[np.float32]

MEMORY_UNIT: Final = 256
"""llama.cpp rounds up to so many tokens."""


class ContextNotAvailable(EngineFailure):
    """The memory is not there, or the model cannot be run."""


class Entry(NamedTuple):
    """One token to compute."""

    token_id: int
    position: int
    """In its sequence, from 0."""
    sequence: int
    is_scored: bool
    """Whether the logits behind it are wanted."""


class DecodingContext:
    """llama.cpp's context: a memory of so many tokens for each sequence. Of one thread at a time."""

    def __init__(self, model: GgufModel, *, sequences: int, length: int, batch_tokens: int, threads: int) -> None:
        """`batch_tokens` is the most that a step computes. Takes a moment: the memory is filled.

        Raises ContextNotAvailable."""
        library = model.library
        params = library.LlamaContextParams()
        params.n_ctx = sequences * (-length // MEMORY_UNIT * -MEMORY_UNIT)
        params.n_seq_max = sequences
        params.n_batch = params.n_ubatch = batch_tokens
        params.n_threads = params.n_threads_batch = threads
        # in a memory that they shared, sequences would have an influence on the last digits of each other's logits
        params.kv_unified = False
        try:
            self._native: Any = library.LlamaContext(model.native, params, verbose=False)
        except Exception as error:
            message = f"llama.cpp has no room for {sequences} requests of {length} tokens: {error}"
            raise ContextNotAvailable(message) from error
        self._batch: Any = library.LlamaBatch(n_tokens=batch_tokens, embd=0, n_seq_max=1, verbose=False)
        self._reader = _LogitsReader()
        self._read: Any = library.LlamaSampler()
        self._read.add_custom(self._reader)

    def decode(self, entries: Sequence[Entry]) -> None:
        """One step."""
        batch = self._batch
        batch.clear()
        for token_id, position, sequence, is_scored in entries:
            batch.add(token_id, position, [sequence], is_scored)
        self._native.decode(batch)

    def logits(self, index: int) -> Logits:
        """Behind the entry of that index in the last step, for the whole vocabulary."""
        self._read.sample(self._native, index)
        return self._reader.logits

    def sample(self, sampler: Any, index: int) -> int:
        """The token that one of llama.cpp's samplers chooses there."""
        token_id: int = sampler.sample(self._native, index)
        return token_id

    def forget(self, sequence: int, start: int = 0) -> None:
        """What is known of a sequence from a position on."""
        self._native.memory_seq_rm(sequence, start, -1)

    def copy(self, source: int, target: int) -> None:
        """Make an empty sequence the same as another."""
        self._native.memory_seq_cp(source, target, 0, -1)

    def close(self) -> None:
        """Let go of everything. May be called again."""
        self._native = self._batch = self._read = None


class CustomSampler(Protocol):
    """What llama.cpp calls of a sampler written in Python, by way of inferna."""

    name: str

    def apply(self, ids: Any, logits: Any, probs: Any) -> int | None: ...

    def accept(self, token: int) -> None: ...

    def reset(self) -> None: ...

    def clone(self) -> "CustomSampler": ...


class PassiveSampler(CustomSampler):
    """One that has no state of its own, so it may be shared."""

    name = "northbound"

    def accept(self, token: int) -> None:
        """It does not matter which token was chosen."""

    def reset(self) -> None:
        """There is nothing to start anew."""

    def clone(self) -> "PassiveSampler":
        return self


class _LogitsReader(PassiveSampler):
    """Chooses nothing: a way to all logits at once that builds no number per token."""

    logits: Logits

    def apply(self, ids: Any, logits: Any, probs: Any) -> int | None:  # noqa: ARG002
        self.logits = np.frombuffer(logits, np.float32)
        return 0
