"""Choosing the tokens of one request, in the order of vLLM's steps, by llama.cpp's samplers."""

import random
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from adapters.outbound.llamacpp_engine.context import DecodingContext, Logits, PassiveSampler
from adapters.outbound.llamacpp_engine.forms import FormNotSupported
from adapters.outbound.llamacpp_engine.model import GgufModel
from domain.sampling import LOWEST_TEMPERATURE, SamplingParams

SEEDS: Final = 2**32 - 1
"""The next number is llama.cpp's own for 'any seed'."""

AT_LEAST_ONE: Final = 1
"""Tokens that a cut leaves."""


class TokenSampler:
    """What a request remembers from token to token: where its grammar is, what came up before, its random numbers."""

    def __init__(
        self,
        model: GgufModel,
        sampling: SamplingParams,
        prompt: Sequence[int],
        grammar: str | None,
        context_length: int,
    ) -> None:
        """Raises FormNotSupported for a grammar that llama.cpp does not read."""
        self._chain = chain = model.library.LlamaSampler()
        self._before = _BeforeSampling(sampling, model.vocab_size)
        if grammar is not None and sampling.structured_outputs is not None:
            _add_grammar(chain, model, grammar, sampling.structured_outputs.param)
        if sampling.alternatives is not None or _bans(sampling):
            # Same as vLLM: scores are of the tokens that the form leaves, before anything else is done to them.
            chain.add_custom(self._before)
        if sampling.logit_bias:
            chain.add_logit_bias(model.vocab_size, list(sampling.logit_bias.items()))
        _add_penalties(chain, model, sampling, prompt, context_length)
        _add_choice(chain, sampling)

    def sample(self, context: DecodingContext, index: int, output: list[int]) -> int:
        """The token behind that entry of the last step. `output` is what came before it."""
        self._before.output = output
        return context.sample(self._chain, index)

    @property
    def logits(self) -> Logits:
        """Those that the last token was chosen by, where the request asks for scores."""
        return self._before.logits


class _BeforeSampling(PassiveSampler):
    """Keeps the logits for the scores, and rules out what the request forbids."""

    logits: Logits

    def __init__(self, sampling: SamplingParams, vocab_size: int) -> None:
        self.output: list[int] = []
        self._sampling = sampling
        self._is_scored = sampling.alternatives is not None
        self._ends = [*sampling.stop_token_ids, *sampling.ignored_stop_token_ids]
        if sampling.eos_token_id is not None:
            # Same as vLLM: held off even where it does not end the answer
            self._ends.append(sampling.eos_token_id)
        self._forbidden = None
        if sampling.allowed_token_ids is not None:
            self._forbidden = np.ones(vocab_size, np.bool_)
            self._forbidden[list(sampling.allowed_token_ids)] = False

    def apply(self, ids: Any, logits: Any, probs: Any) -> int | None:  # noqa: ARG002
        shown = np.frombuffer(logits, np.float32)  # what is written to it is what the next sampler sees
        if self._is_scored:
            self.logits = shown.copy()
        if self._forbidden is not None:
            shown[self._forbidden] = -np.inf
        if banned := self._banned_now():
            shown[banned] = -np.inf
        return None

    def _banned_now(self) -> list[int]:
        output = self.output
        banned = [words[-1] for words in self._sampling.bad_words_token_ids or () if _is_next(words, output)]
        return banned + self._ends if len(output) < self._sampling.min_tokens else banned


def _bans(sampling: SamplingParams) -> bool:
    return bool(sampling.min_tokens or sampling.allowed_token_ids is not None or sampling.bad_words_token_ids)


def _is_next(words: Sequence[int], output: list[int]) -> bool:
    """Whether the last of these tokens would complete them."""
    before = list(words[:-1])
    return output[len(output) - len(before) :] == before


def _add_grammar(chain: Any, model: GgufModel, grammar: str, param: str) -> None:
    try:
        chain.add_grammar(model.vocab, grammar, "root")
    except ValueError as error:
        raise FormNotSupported(f"{param}: llama.cpp does not read the grammar.", param) from error


def _add_penalties(
    chain: Any, model: GgufModel, sampling: SamplingParams, prompt: Sequence[int], context_length: int
) -> None:
    """Same as vLLM: a repetition counts from the prompt on, frequency and presence in the output alone."""
    if sampling.repetition_penalty != 1:
        chain.add_penalties(model.vocab_size, context_length, sampling.repetition_penalty, 0.0, 0.0)
        repetition = chain.chain_get(len(chain) - 1)
        for token_id in prompt:
            repetition.accept(token_id)
    if sampling.frequency_penalty or sampling.presence_penalty:
        chain.add_penalties(
            model.vocab_size, context_length, 1.0, sampling.frequency_penalty, sampling.presence_penalty
        )


def _add_choice(chain: Any, sampling: SamplingParams) -> None:
    if sampling.is_greedy:
        chain.add_greedy()
        return
    chain.add_temp(max(sampling.temperature, LOWEST_TEMPERATURE))
    if sampling.min_p > 0:
        chain.add_min_p(sampling.min_p, AT_LEAST_ONE)
    if sampling.top_k > 0:
        chain.add_top_k(sampling.top_k)
    if sampling.top_p < 1:
        chain.add_top_p(sampling.top_p, AT_LEAST_ONE)
    seed = random.getrandbits(32) if sampling.seed is None else sampling.seed
    chain.add_dist(seed % SEEDS)
