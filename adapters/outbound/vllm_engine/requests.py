"""What is asked of the engine core, in its own terms."""

from msgspec import structs

from adapters.outbound.vllm_engine.grammar_backends import Backend
from adapters.outbound.vllm_engine.structured_outputs import engine_structured_outputs
from adapters.outbound.vllm_engine.wire import (
    EngineCoreRequest,
    EngineLora,
    EngineRepetitionDetection,
    EngineSampling,
    OutputKind,
)
from domain.generation import GenerationRequest
from domain.lora import LoraAdapter
from domain.sampling import LOWEST_TEMPERATURE, SamplingParams


def engine_sampling(params: SamplingParams, backend: Backend = "auto") -> EngineSampling:
    """The sampling parameters, with what vLLM expects a frontend to have resolved. Raises FormNotSupported."""
    # Same as vLLM: end-of-answer tokens are among all stop tokens, which min_tokens holds off, even where
    # ignore_eos keeps them from ending the answer.
    all_stop = dict.fromkeys((*params.stop_token_ids, *params.ignored_stop_token_ids))
    if params.eos_token_id is not None:
        all_stop[params.eos_token_id] = None
    greedy = params.is_greedy
    return EngineSampling(
        max_tokens=params.max_tokens,
        min_tokens=params.min_tokens,
        temperature=0.0 if greedy else max(params.temperature, LOWEST_TEMPERATURE),
        top_p=1.0 if greedy else params.top_p,
        top_k=0 if greedy else max(params.top_k, 0),
        min_p=0.0 if greedy else params.min_p,
        frequency_penalty=params.frequency_penalty,
        presence_penalty=params.presence_penalty,
        repetition_penalty=params.repetition_penalty,
        seed=params.seed,
        ignore_eos=params.ignore_eos,
        stop_token_ids=list(params.stop_token_ids) or None,
        logprobs=params.logprobs if params.logprob_token_ids is None else None,
        prompt_logprobs=params.prompt_logprobs,
        logprob_token_ids=params.logprob_token_ids,
        logit_bias=params.logit_bias,
        allowed_token_ids=params.allowed_token_ids,
        repetition_detection=_repetition(params),
        structured_outputs=engine_structured_outputs(params.structured_outputs, backend),
        extra_args=params.extra_args,
        routed_experts_prompt_start=params.routed_experts_prompt_start,
        bad_words_token_ids=params.bad_words_token_ids,
        output_kind=OutputKind.DELTA,
        eos_token_id=None if params.ignore_eos else params.eos_token_id,
        all_stop_token_ids=list(all_stop),
    )


def engine_request(
    request: GenerationRequest, internal_id: str, arrival_time: float, backend: Backend = "auto"
) -> EngineCoreRequest:
    """The body of an ADD; `internal_id` is what the engine knows the request by, and must be its own.

    `backend` is what the engine is set to. Raises FormNotSupported."""
    return EngineCoreRequest(
        request_id=internal_id,
        prompt_token_ids=list(request.prompt_token_ids),
        mm_features=None,
        sampling_params=engine_sampling(request.sampling, backend),
        pooling_params=None,
        arrival_time=arrival_time,
        # never in place, unlike vLLM: the engine would read it anew at every step
        lora_request=None if request.adapter is None else engine_lora(request.adapter),
        cache_salt=request.cache_salt,
        priority=request.priority,
        external_req_id=request.request_id,
        data_parallel_rank=request.data_parallel_rank,
        session_id=request.session_id,
    )


def engine_lora(adapter: LoraAdapter, *, in_place: bool = False) -> EngineLora:
    """The adapter, as it comes with a request or is to be loaded."""
    return EngineLora(adapter.name, adapter.id, adapter.path, adapter.base_model_name, in_place, adapter.is_3d)


def _repetition(params: SamplingParams) -> EngineRepetitionDetection | None:
    detection = params.repetition_detection
    return None if detection is None else EngineRepetitionDetection(**structs.asdict(detection))
