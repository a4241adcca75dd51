"""The thread that decodes: all that run, one step after the other."""

import asyncio
import logging
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from adapters.outbound.llamacpp_engine.context import DecodingContext, Entry
from adapters.outbound.llamacpp_engine.decoding import Decoding, Outcome
from adapters.outbound.llamacpp_engine.model import GgufModel
from adapters.outbound.llamacpp_engine.sampler import TokenSampler
from adapters.outbound.llamacpp_engine.scheduler import Part, Scheduler
from adapters.outbound.llamacpp_engine.scores import columns, row, width
from domain.errors import EngineFailure, RequestError
from domain.generation import TokenDelta
from domain.logprobs import LogprobColumns
from domain.timing import EngineStart

logger = logging.getLogger("northbound.llama.cpp")

Outcomes = list[tuple[Decoding, Outcome]]
"""What came of one step."""


class Worker:
    """Owns the context. Requests and cancellations come in by a queue; what comes of a step goes to the event loop at
    once, for all requests."""

    def __init__(
        self,
        model: GgufModel,
        context: DecodingContext,
        scheduler: Scheduler,
        max_model_len: int,
        on_outcomes: Callable[[Outcomes], None],
        on_death: Callable[[Exception], None],
    ) -> None:
        """Both are called on the running event loop: `on_outcomes` once a step, `on_death` with what no request can be
        blamed for."""
        self._model = model
        self._context = context
        self._scheduler = scheduler
        self._max_model_len = max_model_len
        self._on_outcomes = on_outcomes
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._commands: SimpleQueue[Decoding | None] = SimpleQueue()
        self._outcomes: Outcomes = []
        self._thread = Thread(target=self._run, name="llama.cpp", daemon=True)
        self._thread.start()

    def submit(self, decoding: Decoding) -> None:
        self._commands.put(decoding)

    def cancel(self, decoding: Decoding) -> None:
        """It is dropped before the next step."""
        decoding.is_cancelled = True
        self._commands.put(decoding)

    async def aclose(self) -> None:
        """Ends with the step that runs. Nothing comes out of it any more."""
        self._commands.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        try:
            while self._follow_commands():
                self._step()
                self._deliver()
        except Exception as error:
            logger.exception("llama.cpp failed")
            self._loop.call_soon_threadsafe(self._on_death, error)
        finally:
            self._context.close()

    def _follow_commands(self) -> bool:
        """Waits where there is nothing to do. False once it is to end."""
        while not self._commands.empty() or not self._scheduler.has_work:
            decoding = self._commands.get()
            if decoding is None:
                return False
            if decoding.is_cancelled:
                self._scheduler.remove(decoding)
            else:
                self._scheduler.add(decoding)
        return True

    def _step(self) -> None:
        for decoding in self._scheduler.admit():
            self._begin(decoding)
        parts = self._scheduler.plan()
        if parts:
            self._context.decode(_entries(parts))
        index = 0
        for part in parts:
            self._advance(part, index)
            index += part.tokens

    def _begin(self, decoding: Decoding) -> None:
        decoding.scheduled_at = time.monotonic()
        try:
            decoding.sampler = TokenSampler(
                self._model,
                decoding.sampling,
                decoding.request.prompt_token_ids,
                decoding.grammar,
                self._max_model_len,
            )
        except RequestError as refusal:
            self._end(decoding, refusal)

    def _advance(self, part: Part, index: int) -> None:
        """What follows from a computed part, whose first entry in the step is `index`."""
        decoding = part.decoding
        if decoding.scores_prompt:
            for position in range(part.start + 1, min(part.start + part.tokens + 1, decoding.prompt_length)):
                logits = self._context.logits(index + position - part.start - 1)
                decoding.prompt_rows.append(
                    row(logits, decoding.token_ids[position], decoding.sampling.prompt_logprobs or 0)
                )
        if self._scheduler.advance(part):
            try:
                self._sample(decoding, index + part.tokens - 1)
            except (ValueError, RuntimeError) as error:  # a grammar that has come to a dead end, for one
                self._end(decoding, EngineFailure(f"llama.cpp could not choose a token: {error}"))

    def _sample(self, decoding: Decoding, index: int) -> None:
        sampler, sampling = decoding.sampler, decoding.sampling
        is_first = not decoding.output
        prompt_logprobs = self._prompt_logprobs(decoding)
        token_id = sampler.sample(self._context, index, decoding.output)
        logprobs = None
        if (alternatives := sampling.alternatives) is not None:
            scored = row(sampler.logits, token_id, alternatives, sampling.logprob_token_ids)
            logprobs = columns([scored], width(alternatives, self._model.vocab_size))
        finish_reason, stop_reason = decoding.append(token_id)
        now = time.monotonic()
        delta = TokenDelta(
            [token_id],
            logprobs,
            prompt_logprobs,
            finish_reason,
            stop_reason,
            decoding.cached_tokens if is_first else None,
            None,
            None,
            EngineStart(decoding.queued_at, decoding.scheduled_at, now) if is_first else None,
            now,
        )
        if finish_reason is None:
            self._outcomes.append((decoding, delta))
        else:
            self._end(decoding, delta)

    def _prompt_logprobs(self, decoding: Decoding) -> LogprobColumns | None:
        alternatives = decoding.sampling.prompt_logprobs
        if alternatives is None or decoding.output:
            return None
        rows, decoding.prompt_rows = decoding.prompt_rows, []
        return columns(rows, width(alternatives, self._model.vocab_size))

    def _end(self, decoding: Decoding, outcome: Outcome) -> None:
        self._scheduler.remove(decoding)
        self._outcomes.append((decoding, outcome))

    def _deliver(self) -> None:
        """One wake-up of the event loop a step."""
        if self._outcomes:
            outcomes, self._outcomes = self._outcomes, []
            self._loop.call_soon_threadsafe(self._on_outcomes, outcomes)


def _entries(parts: list[Part]) -> list[Entry]:
    entries = []
    for decoding, start, tokens in parts:
        last = len(decoding.token_ids) - 1
        for position in range(start, start + tokens):
            is_scored = position == last or decoding.scores_prompt
            entries.append(Entry(decoding.token_ids[position], position, decoding.slot, is_scored))
    return entries
