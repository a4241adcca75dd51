"""What the engine core sends for one request, in the domain's terms."""

from collections.abc import Sequence

from msgspec.structs import replace

from adapters.outbound.vllm_engine.row_forms import ReadRow, any_rows
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
    output: EngineCoreOutput,
    frames: Sequence[bytes],
    wanted: SamplingParams,
    produced_at: float,
    read_row: ReadRow,
    *,
    is_first: bool,
) -> TokenDelta:
    """The step of a request that did not fail. Raises MalformedTensor."""
    token_ids, logprobs = output.new_token_ids, None
    # what is `wanted.alternatives` in either case, and mostly without a call
    alternatives = wanted.logprobs if wanted.logprob_token_ids is None else wanted.alternatives
    if alternatives is not None:
        if len(token_ids) == 1:
            logprobs = read_row(output.new_logprobs, alternatives)
        if logprobs is None:
            logprobs = any_rows(output.new_logprobs, frames, alternatives, len(token_ids))
            if logprobs is None and token_ids:
                raise MalformedTensor("no logprobs, though they were asked for")
    delta = TokenDelta(token_ids, logprobs, produced_at=produced_at or None)
    if is_first:
        delta = _with_start(delta, output, frames, wanted)
    if output.finish_reason is not None:
        delta = _with_end(delta, output.finish_reason, output)
    if output.kv_transfer_params is not None or output.ec_transfer_params is not None:
        delta = replace(delta, transfer=TransferParams(output.kv_transfer_params, output.ec_transfer_params))
    return delta


def _with_start(
    delta: TokenDelta, output: EngineCoreOutput, frames: Sequence[bytes], wanted: SamplingParams
) -> TokenDelta:
    """Also what comes with a prefill. One that comes again is of a request that was preempted, and mostly from the
    cache: that is none of its caller's business."""
    prompt_logprobs = None
    if wanted.prompt_logprobs is not None and output.new_prompt_logprobs_tensors is not None:
        prompt_logprobs = columns(output.new_prompt_logprobs_tensors, frames, wanted.prompt_logprobs)
    prefill = output.prefill_stats
    return replace(
        delta,
        prompt_logprobs=prompt_logprobs,
        cached_tokens=None if prefill is None else prefill.num_cached_tokens,
        created_cache_tokens=None if prefill is None else prefill.num_cache_creation_tokens,
        start=_start(output.events or (), delta.produced_at),
    )


def _with_end(delta: TokenDelta, reason: int, output: EngineCoreOutput) -> TokenDelta:
    drafts = output.spec_decode_metrics
    return replace(
        delta,
        finish_reason=FINISH_REASONS[reason],
        stop_reason=output.stop_reason,
        speculation=None if drafts is None else _speculation(drafts),
    )


def _start(events: Sequence[EngineEvent], produced_at: float | None) -> EngineStart | None:
    """Same as vLLM: of several times that it was taken up, the first counts, and 0 is no time."""
    if not events and produced_at is None:
        return None
    times = {event.type: event.timestamp for event in reversed(events)}
    return EngineStart(times.get(QUEUED) or None, times.get(SCHEDULED) or None, produced_at)


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
