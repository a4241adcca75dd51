"""A rendered request as `/inference/v1/generate` takes it, from this server or vLLM's. Fields and order as vLLM 0.32
has them; of sampling parameters, what only says the default is left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from adapters.inbound.http.openai.encoding import encode
from adapters.inbound.http.openai.sampling import NotSupported, SamplingFields, StreamOptions
from application.requests import TextOutput, TextRequest
from application.services.prepare import Prepared
from domain.sampling import SamplingParams
from domain.structured_outputs import (
    Choice,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutputs,
)

ALWAYS = object()
"""In place of a default: it is told whatever it is."""


class Rendered(Struct, kw_only=True):
    request_id: str
    token_ids: Sequence[int]
    token_offsets: None = None
    features: None = None
    content_parts: None = None
    sampling_params: Mapping[str, Any]
    model: str | None
    reasoning_ended: None = None
    reasoning_parser_kwargs: None = None
    return_token_ids: None = None
    output_mode: str = "tokens"
    stream: bool
    stream_options: StreamOptions | None
    cache_salt: str | None
    priority: int
    kv_transfer_params: None = None
    """In the sampling parameters, as is the other."""
    ec_transfer_params: None = None


def rendered(body: SamplingFields, request: TextRequest, prepared: Prepared, request_id: str) -> Rendered:
    """Raises NotSupported for what only a rendered request could tell."""
    if body.return_token_offsets:
        raise NotSupported("return_token_offsets is not supported by this server yet.", "return_token_offsets")
    return Rendered(
        request_id=request_id,
        token_ids=prepared.request.prompt_token_ids,
        sampling_params=_sampling_params(request, prepared.request.sampling.max_tokens),
        model=body.model,
        stream=bool(body.stream),
        stream_options=_stream_options(request.output) if body.stream and body.stream_options else None,
        cache_salt=request.scheduling.cache_salt,
        priority=request.scheduling.priority,
    )


def _stream_options(output: TextOutput) -> StreamOptions:
    return StreamOptions(include_usage=output.usage_at_end, continuous_usage_stats=output.usage_so_far)


def _sampling_params(request: TextRequest, max_tokens: int | None) -> dict[str, Any]:
    """What the request says: what a model always has, its end token, say, is for who generates to know."""
    sampling, output = request.sampling, request.output
    fields: dict[str, tuple[Any, Any]] = {
        "n": (output.n, 1),
        "presence_penalty": (sampling.presence_penalty, ALWAYS),
        "frequency_penalty": (sampling.frequency_penalty, ALWAYS),
        "repetition_penalty": (sampling.repetition_penalty, ALWAYS),
        "temperature": (sampling.temperature, ALWAYS),
        "top_p": (sampling.top_p, ALWAYS),
        "top_k": (sampling.top_k, 0),
        "min_p": (sampling.min_p, ALWAYS),
        "seed": (sampling.seed, None),
        "stop": (output.stop, ALWAYS),
        "stop_token_ids": (sampling.stop_token_ids, ALWAYS),
        "ignore_eos": (sampling.ignore_eos, False),
        "max_tokens": (max_tokens, ALWAYS),
        "min_tokens": (sampling.min_tokens, 0),
        "logprobs": (sampling.alternatives, None),
        "prompt_logprobs": (sampling.prompt_logprobs, None),
        "logprob_token_ids": (sampling.logprob_token_ids, None),
        "skip_special_tokens": (output.skip_special_tokens, True),
        "include_stop_str_in_output": (output.include_stop, False),
        "stream_interval": (output.interval, 1),
        "structured_outputs": (_form(sampling), None),
        "logit_bias": (sampling.logit_bias, None),
        "allowed_token_ids": (sampling.allowed_token_ids, None),
        "extra_args": (sampling.extra_args, None),
        "bad_words": (request.bad_words, ALWAYS),
        "repetition_detection": (sampling.repetition_detection, None),
        "routed_experts_prompt_start": (sampling.routed_experts_prompt_start, 0),
    }
    return {name: value for name, (value, default) in fields.items() if value != default}


def _form(sampling: SamplingParams) -> dict[str, Any] | None:
    outputs = sampling.structured_outputs
    if outputs is None:
        return None
    flags = {name: value for name, value in structs.asdict(outputs).items() if name not in ("form", "param") and value}
    return _kind(outputs) | flags


def _kind(outputs: StructuredOutputs) -> dict[str, Any]:
    match outputs.form:
        case JsonSchema(schema):
            return {"json": schema}
        case JsonObject():
            return {"json_object": True}
        case Regex(pattern):
            return {"regex": pattern}
        case Choice(options):
            return {"choice": options}
        case Grammar(rules):
            return {"grammar": rules}
        case StructuralTag(tag):
            return {"structural_tag": encode(tag).decode()}
