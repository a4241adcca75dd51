"""A generate request as the service takes it. Knows no server option."""

from msgspec import structs

from adapters.inbound.http.openai.headers import NO_HEADERS, SchedulingHeaders
from adapters.inbound.http.openai.sampling import (
    InvalidField,
    SamplingFields,
    check_max_tokens,
    lower_output,
    lower_sampling,
    lower_scheduling,
    refuse_unbuilt,
)
from adapters.inbound.http.vllm.generate.schema import GenerateRequest, SamplingParamsFields
from application.model import ModelDefaults
from application.requests import Continuation
from domain.lora import LoraAdapter

MOST_STOP_STRINGS = 1024
"""vLLM has no limit; each of them is looked for in every step."""

NEUTRAL = ModelDefaults()
"""Same as vLLM: whoever renders knows the model's defaults, and sends what is to hold."""

_SHARED = set(SamplingParamsFields.__struct_fields__) & set(SamplingFields.__struct_fields__)


def lower(
    body: GenerateRequest,
    request_id: str,
    defaults: ModelDefaults,
    headers: SchedulingHeaders = NO_HEADERS,
    adapter: LoraAdapter | None = None,
) -> Continuation:
    """Raises RequestError, with the field's name, for what is not served or contradicts itself."""
    params = body.sampling_params
    refuse_unbuilt(body)
    refuse_unbuilt(params)
    fields = _as_openai(body)
    shows_text = body.output_mode == "text"
    output = lower_output(fields, most_stop_strings=MOST_STOP_STRINGS)
    if params.detokenize is False and shows_text:
        raise InvalidField("output_mode of text needs detokenize to be true.", "output_mode")
    if params.detokenize is False and output.stop:
        raise InvalidField("stop needs detokenize to be true.", "stop")
    check_max_tokens(params.max_tokens, "max_tokens")
    max_tokens = defaults.max_tokens if params.max_tokens is None else params.max_tokens
    return Continuation(
        request_id=request_id,
        token_ids=body.token_ids,
        sampling=lower_sampling(fields, NEUTRAL, max_tokens=max_tokens, logprobs=params.logprobs),
        bad_words=params.bad_words or (),
        adapter=adapter,
        scheduling=lower_scheduling(fields, headers),
        output=structs.replace(output, reads_tokens=shows_text or bool(output.stop)),
    )


def _as_openai(body: GenerateRequest) -> SamplingFields:
    """By the names that the OpenAI endpoints have."""
    params = body.sampling_params
    return SamplingFields(
        **{name: getattr(params, name) for name in _SHARED},
        vllm_xargs=params.extra_args,
        stream=body.stream,
        stream_options=body.stream_options,
        cache_salt=body.cache_salt,
        priority=body.priority,
        kv_transfer_params=body.kv_transfer_params,
        ec_transfer_params=body.ec_transfer_params,
    )
