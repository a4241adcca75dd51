"""What an engine core does with the messages of frontends, without sockets and without a model."""

from collections.abc import Callable
from typing import Any, Final, Literal, Protocol

from msgspec import Struct, ValidationError
from msgspec.msgpack import Decoder, Encoder

from adapters.outbound.vllm_engine.emulated_lora import CallFailed, EmulatedLora, adapter_of
from adapters.outbound.vllm_engine.tensors import pack_prompt_rows, pack_rows
from adapters.outbound.vllm_engine.wire import (
    ABORT,
    ADD,
    QUEUED,
    SCHEDULED,
    UTILITY,
    EngineCoreOutput,
    EngineCoreOutput032,
    EngineCoreOutputs,
    EngineCoreRequest,
    EngineEvent,
    FinishCode,
    OutputError,
    PrefillStats,
    SpecDecodeMetrics,
    UtilityOutput,
    UtilityRequest,
)
from domain.errors import RequestError
from domain.generation import FinishReason, GenerationRequest, TokenDelta
from domain.logprobs import WHOLE_VOCABULARY
from domain.sampling import SamplingParams

"""Events in the life of a request, told with its first output."""

UTILITY_RESULTS: Final[dict[str, Any]] = {
    "get_supported_tasks": ["generate"],
    "get_weight_version": "0",
    "is_scheduler_paused": False,
    "is_sleeping": False,
    "pause_generation": None,
    "pause_scheduler": None,
    "profile": None,
    "reset_encoder_cache": None,
    "reset_mm_cache": None,
    "reset_prefix_cache": True,
    "resume_scheduler": None,
    "wake_up": None,
}
"""What calls come to that change nothing."""

FINISH_CODES: Final = {
    FinishReason.STOP: FinishCode.STOP,
    FinishReason.LENGTH: FinishCode.LENGTH,
    FinishReason.ABORT: FinishCode.ABORT,
    FinishReason.REPETITION: FinishCode.REPETITION,
}

PAUSED = OutputError("engine_paused", "Generation is paused. Please retry after it resumes.", retryable=True)
INVALID = OutputError("validation_error", "The emulated engine refuses every request.")


class Generation(Protocol):
    """What is played for one request."""

    def step(self, tokens: int, alternatives: int | None) -> TokenDelta:
        """The next tokens, or fewer at the end, with scores of as many alternatives unless that is None."""
        ...


Generate = Callable[[GenerationRequest], Generation]
Observe = Callable[[str, str], None]
"""Is told what happens to which request id: `admitted`, then `finished` or `aborted`; `abort ignored` if it is not
running. Called from the engine's thread."""

DraftMetrics = Literal["none", "summary", "detailed"]

Message = tuple[int, list[bytes]]
"""Frames for the frontend process of that index."""


class Faults(Struct, frozen=True, kw_only=True):
    """What an engine does to each request instead of answering it."""

    ends_in: FinishCode | None = None
    """Every request ends so, after as many tokens of its own."""
    ends_after: int = 0
    refuses_with: OutputError | None = None
    """No request is taken. An engine before 0.33 only says that it failed."""


class _Running(Struct):
    """A request that was admitted."""

    request_id: str
    client_index: int
    prompt_tokens: int
    generation: Generation
    alternatives: int | None
    admitted: float
    tokens: int = 0
    drafts: SpecDecodeMetrics | None = None


class EmulatedEngine:
    """One engine: messages in, messages out. Times are the engine's monotonic seconds."""

    def __init__(
        self,
        index: int,
        generate: Generate,
        observe: Observe,
        *,
        vocab_size: int,
        tokens_per_step: int,
        is_032: bool,
        faults: Faults,
        draft_metrics: DraftMetrics = "none",
    ) -> None:
        self.index = index
        self.tokens = 0
        """All that it generated."""
        self._generate = generate
        self._observe = observe
        self._vocab_size = vocab_size
        self._tokens_per_step = tokens_per_step
        self._output: type[EngineCoreOutput032] = EngineCoreOutput032 if is_032 else EngineCoreOutput
        self._faults = faults
        self._draft_metrics = draft_metrics
        self._adapters = EmulatedLora()
        self._running: dict[str, _Running] = {}
        self._widest = 0
        self._encode = Encoder().encode
        self._decode_request = Decoder(EngineCoreRequest).decode
        self._decode_aborts = Decoder(list[str]).decode
        self._decode_utility = Decoder(UtilityRequest).decode

    @property
    def has_work(self) -> bool:
        return bool(self._running)

    def receive(self, kind: bytes, body: bytes, now: float) -> list[Message]:
        """What is answered at once to a message. Raises DecodeError or ValidationError, as the real one dies of it."""
        if kind == ADD:
            return self._add(self._decode_request(body), now)
        if kind == ABORT:
            # Same as vLLM: who aborts hears no more of the request.
            for request_id in self._decode_aborts(body):
                known = self._running.pop(request_id, None) is not None
                self._observe("aborted" if known else "abort ignored", request_id)
            self._measure()
        elif kind == UTILITY:
            return [self._call(self._decode_utility(body), now)]
        return []

    def step(self, now: float) -> list[Message]:
        """One engine step: the next tokens of every request, in one message per frontend process."""
        per_client: dict[int, tuple[list[EngineCoreOutput032], list[bytes]]] = {}
        ended = []
        for running in self._running.values():
            if (group := per_client.get(running.client_index)) is None:
                group = per_client[running.client_index] = ([], [b""])
            output = self._advance(running, group[1], now)
            group[0].append(output)
            if output.finish_reason is not None:
                ended.append(running.request_id)
        for request_id in ended:
            del self._running[request_id]
            self._observe("finished", request_id)
        if ended:
            self._measure()
        for outputs, frames in per_client.values():
            frames[0] = self._encode(EngineCoreOutputs(self.index, outputs, timestamp=now))
        return [(client_index, frames) for client_index, (_, frames) in per_client.items()]

    def shut_down(self, now: float) -> list[Message]:
        """End everything: each request is aborted, and told so."""
        running, self._running = self._running, {}
        return [self._ended_at_once(r.request_id, r.client_index, FinishCode.ABORT, now) for r in running.values()]

    def _add(self, request: EngineCoreRequest, now: float) -> list[Message]:
        request_id, client_index = request.request_id, request.client_index
        error = self._faults.refuses_with
        try:
            generation_request = _generation_request(request)
        except RequestError as refusal:
            error = OutputError("validation_error", str(refusal), refusal.param)
        if error is not None:
            return [self._ended_at_once(request_id, client_index, FinishCode.ERROR, now, error)]
        self._running[request_id] = _Running(
            request_id,
            client_index,
            len(generation_request.prompt_token_ids),
            self._generate(generation_request),
            generation_request.sampling.alternatives,
            now,
        )
        self._measure()
        self._observe("admitted", request_id)
        return []

    def _call(self, call: UtilityRequest, now: float) -> Message:
        try:
            outcome = UtilityOutput(call.call_id, result=(None, self._result(call)))
        except (CallFailed, TypeError, ValidationError) as failure:
            outcome = UtilityOutput(call.call_id, f"Call to {call.method} method failed: {failure}")
        message: EngineCoreOutputs[EngineCoreOutput032] = EngineCoreOutputs(
            self.index, timestamp=now, utility_output=outcome
        )
        return call.client_index, [self._encode(message)]

    def _result(self, call: UtilityRequest) -> Any:
        if call.method in self._adapters.calls:
            return self._adapters.calls[call.method](*call.args)
        if call.method in UTILITY_RESULTS:
            return UTILITY_RESULTS[call.method]
        raise CallFailed("it is not emulated.")

    def _ended_at_once(
        self, request_id: str, client_index: int, code: FinishCode, now: float, error: OutputError | None = None
    ) -> Message:
        output = self._output(request_id, (), finish_reason=code)
        if isinstance(output, EngineCoreOutput):
            output.error = error
        message = EngineCoreOutputs(self.index, [output], timestamp=now, finished_requests=[request_id])
        return client_index, [self._encode(message)]

    def _advance(self, running: _Running, frames: list[bytes], now: float) -> EngineCoreOutput032:
        faults = self._faults
        if faults.ends_in is not None and running.tokens >= faults.ends_after:
            return self._output(running.request_id, (), finish_reason=faults.ends_in)
        # Same as vLLM: every row is as wide as the widest of the batch.
        delta = running.generation.step(self._tokens_per_step, None if running.alternatives is None else self._widest)
        output = self._output(
            running.request_id,
            delta.token_ids,
            None if delta.logprobs is None else pack_rows(delta.logprobs, frames),
            finish_reason=None if delta.finish_reason is None else FINISH_CODES[delta.finish_reason],
            stop_reason=delta.stop_reason,
        )
        if not running.tokens:
            self._begin(output, running, delta, frames, now)
        elif self._draft_metrics != "none" and delta.token_ids:
            self._count_drafts(output, running, len(delta.token_ids) - 1)
        running.tokens += len(delta.token_ids)
        self.tokens += len(delta.token_ids)
        return output

    def _begin(
        self, output: EngineCoreOutput032, running: _Running, delta: TokenDelta, frames: list[bytes], now: float
    ) -> None:
        """What only the first output of a request brings."""
        if delta.prompt_logprobs is not None:
            output.new_prompt_logprobs_tensors = pack_prompt_rows(delta.prompt_logprobs, frames)
        cached = delta.cached_tokens or 0
        computed = running.prompt_tokens - cached
        output.prefill_stats = PrefillStats(running.prompt_tokens, computed, cached, cached, 0, computed)
        output.events = [EngineEvent(QUEUED, running.admitted), EngineEvent(SCHEDULED, now)]

    def _count_drafts(self, output: EngineCoreOutput032, running: _Running, kept: int) -> None:
        """All tokens of a step but one are taken for drafts that were kept."""
        most = self._tokens_per_step - 1
        drafts = running.drafts = running.drafts or SpecDecodeMetrics(most, [0] * (most + 1))
        drafts.histogram[kept] += 1
        drafts.num_draft_tokens += most
        if self._draft_metrics == "detailed":
            drafts.per_step_accepted.append(kept)
            drafts.per_step_drafted.append(most)
        if output.finish_reason is not None:
            output.spec_decode_metrics = drafts

    def _measure(self) -> None:
        """How many alternatives each row of the batch has: as many as anyone asked for."""
        asked = [running.alternatives for running in self._running.values() if running.alternatives is not None]
        self._widest = self._vocab_size if WHOLE_VOCABULARY in asked else max(asked, default=0)


def _generation_request(request: EngineCoreRequest) -> GenerationRequest:
    """Raises RequestError for what is no text generation."""
    sampling, prompt_token_ids = request.sampling_params, request.prompt_token_ids
    if sampling is None or prompt_token_ids is None:
        raise RequestError("The emulated engine only generates tokens from tokens.")
    if sampling.structured_outputs is not None:
        raise RequestError("structured_outputs are not supported by the emulated engine.", "structured_outputs")
    return GenerationRequest(
        request_id=request.request_id,
        prompt_token_ids=prompt_token_ids,
        sampling=SamplingParams(
            max_tokens=sampling.max_tokens,
            min_tokens=sampling.min_tokens,
            seed=sampling.seed,
            ignore_eos=sampling.ignore_eos,
            eos_token_id=sampling.eos_token_id,
            stop_token_ids=sampling.stop_token_ids or (),
            logprobs=sampling.logprobs,
            prompt_logprobs=sampling.prompt_logprobs,
            logprob_token_ids=sampling.logprob_token_ids,
        ),
        adapter=adapter_of(request.lora_request),
    )
