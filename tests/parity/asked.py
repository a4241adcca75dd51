"""What a frontend asks its engine for, as far as an engine looks."""

import json
from typing import Any

import msgspec

from adapters.outbound.vllm_engine.wire import EngineSampling

FRONTENDS_OWN = {
    *("n", "stop", "include_stop_str_in_output", "bad_words", "detokenize", "skip_special_tokens"),
    *("spaces_between_special_tokens", "output_kind", "truncate_prompt_tokens", "stream_interval", "skip_clone"),
    "output_text_buffer_length",
}
"""Sampling parameters that no engine reads."""


def as_engines_read(request: dict[str, Any]) -> dict[str, Any]:
    """A request, without what an engine does not read or takes a missing value for."""
    return {**request, "sampling_params": _sampling(request["sampling_params"])}


def _sampling(given: dict[str, Any]) -> dict[str, Any]:
    known = msgspec.convert(given, EngineSampling, str_keys=True)
    fields = msgspec.structs.fields(EngineSampling)
    told = {
        field.encode_name: getattr(known, field.name) for field in fields if getattr(known, field.name) != field.default
    }
    read = {field.encode_name for field in fields}
    told |= {name: value for name, value in given.items() if name not in read and value not in (None, False)}
    sampling = msgspec.to_builtins(
        {name: value for name, value in told.items() if name not in FRONTENDS_OWN}, str_keys=True
    )
    if sampling.pop("skip_reading_prefix_cache", None) is not None and known.prompt_logprobs is None:
        sampling["skip_reading_prefix_cache"] = True  # else it goes without saying
    if sampling.get("top_k") == -1:
        del sampling["top_k"]  # as is 0
    form = sampling.get("structured_outputs", {})
    if isinstance(form.get("json"), str):
        form["json"] = json.loads(form["json"])
    if stops := sampling.get("_all_stop_token_ids"):
        sampling["_all_stop_token_ids"] = sorted(stops)  # a set
    return {name: value for name, value in sorted(sampling.items()) if value != []}
