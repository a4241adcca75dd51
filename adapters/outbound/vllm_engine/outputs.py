"""What the engine core sends for one request, in the domain's terms."""

from collections.abc import Sequence

from adapters.outbound.vllm_engine.row_forms import row_columns
from adapters.outbound.vllm_engine.tensors import MalformedTensor, columns
from adapters.outbound.vllm_engine.wire import (
    QUEUED,
    SCHEDULED,
    EngineCoreOutput,
    EngineEvent,
    FinishCode,
    OutputError,
    SpecDecodeMetrics,
)
from application.ports.engine import EngineUnavailable
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, TokenDelta, TransferParams
from domain.sampling import SamplingParams
from domain.speculation import Speculation
from domain.structured_outputs import StructuredOutputs
from domain.timing import EngineStart

FINISH_REASONS: dict[int, FinishReason] = {
    FinishCode.STOP: FinishReason.STOP,
    FinishCode.LENGTH: FinishReason.LENGTH,
    FinishCode.ABORT: FinishReason.ABORT,
    FinishCode.REPETITION: FinishReason.REPETITION,
}


class RefusedByEngine(RequestError):
    """The engine's own validation does not take the request."""


def failure_of(output: EngineCoreOutput, structured: StructuredOutputs | None = None) -> Exception | None:
    """What went wrong with the request, when the output says that it ended so.

    `structured` is the form asked for of an output that has not begun. An engine before 0.33 only says that it failed
    over a form that does not compile, which is the likeliest reason for it to fail then.
    """
    if output.error is not None:
        return _failure(output.error)
    if output.finish_reason is None or output.finish_reason in FINISH_REASONS:
        return None
    if output.finish_reason == FinishCode.ERROR and structured is not None:
        message = f"{structured.param} asks for a form that the engine cannot hold an output to."
        return RefusedByEngine(message, structured.param)
    if output.finish_reason == FinishCode.ERROR:
        return EngineFailure("Internal server error: the engine failed while it generated this answer.")
    return EngineFailure(f"The engine ended the request for reason {output.finish_reason}, which is not known here.")


def delta_of(
    output: EngineCoreOutput, frames: Sequence[bytes], wanted: SamplingParams, produced_at: float, *, is_first: bool
) -> TokenDelta:
    """The step of a request that did not fail. Raises MalformedTensor."""
    token_ids = output.new_token_ids
    logprobs = prompt_logprobs = None
    if wanted.alternatives is not None:
        logprobs = row_columns(output.new_logprobs, frames, wanted.alternatives, len(token_ids))
        if logprobs is None and token_ids:
            raise MalformedTensor("no logprobs, though they were asked for")
    if wanted.prompt_logprobs is not None and output.new_prompt_logprobs_tensors is not None:
        prompt_logprobs = columns(output.new_prompt_logprobs_tensors, frames, wanted.prompt_logprobs)
    # a request that was preempted is prefilled again, mostly from the cache: that is none of its caller's business
    prefill = output.prefill_stats if is_first else None
    transfer = None
    if output.kv_transfer_params is not None or output.ec_transfer_params is not None:
        transfer = TransferParams(output.kv_transfer_params, output.ec_transfer_params)
    return TokenDelta(
        token_ids,
        logprobs,
        prompt_logprobs,
        None if output.finish_reason is None else FINISH_REASONS[output.finish_reason],
        output.stop_reason,
        None if prefill is None else prefill.num_cached_tokens,
        None if prefill is None else prefill.num_cache_creation_tokens,
        transfer,
        _start(output.events or (), produced_at) if is_first else None,
        produced_at or None,
        None if output.spec_decode_metrics is None else _speculation(output.spec_decode_metrics),
    )


def _start(events: Sequence[EngineEvent], produced_at: float) -> EngineStart | None:
    """Same as vLLM: of several times that it was taken up, the first counts, and 0 is no time."""
    if not events and not produced_at:
        return None
    times = {event.type: event.timestamp for event in reversed(events)}
    return EngineStart(times.get(QUEUED) or None, times.get(SCHEDULED) or None, produced_at or None)


def _speculation(told: SpecDecodeMetrics) -> Speculation:
    return Speculation(
        told.num_spec_tokens, told.histogram, told.num_draft_tokens, told.per_step_accepted, told.per_step_drafted
    )


def _failure(error: OutputError) -> Exception:
    if error.code == "validation_error":
        return RefusedByEngine(error.message or "The engine refused the request.", error.param)
    if error.code == "engine_paused":
        return EngineUnavailable(error.message or "The engine is paused.")
    return EngineFailure(error.message or "Internal server error: the engine failed while it generated this answer.")
