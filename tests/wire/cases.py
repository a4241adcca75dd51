"""Requests that are encoded here and were decoded by vLLM."""

from domain.generation import GenerationRequest
from domain.lora import LoraAdapter
from domain.sampling import RepetitionDetection, SamplingParams
from domain.structured_outputs import (
    Choice,
    Form,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutputs,
)

ARRIVAL_TIME = 1.5


def request(request_id: str, prompt: list[int], **sampling: object) -> GenerationRequest:
    return GenerationRequest(
        request_id=request_id,
        prompt_token_ids=prompt,
        sampling=SamplingParams(**sampling),  # type: ignore[arg-type]
    )


def held_to(form: Form, **options: object) -> GenerationRequest:
    structured = StructuredOutputs(form=form, **options)  # type: ignore[arg-type]
    return request("cmpl-8", [1], max_tokens=1, structured_outputs=structured)


REQUESTS = {
    "defaults": request("cmpl-1", [1, 2, 3], max_tokens=16),
    "greedy": request(
        "cmpl-2", [7], max_tokens=5, temperature=0, top_p=0.5, top_k=4, min_p=0.1, eos_token_id=2, logprobs=1
    ),
    "nearly greedy": request("cmpl-3", [7], max_tokens=5, temperature=0.001),
    "everything": request(
        "chatcmpl-4",
        [0, 49151, 65536],
        max_tokens=100,
        min_tokens=3,
        temperature=0.7,
        top_p=0.9,
        top_k=40,
        min_p=0.05,
        frequency_penalty=0.25,
        presence_penalty=-0.5,
        repetition_penalty=1.1,
        seed=42,
        eos_token_id=2,
        stop_token_ids=[5, 6],
        logprobs=5,
        prompt_logprobs=2,
    ),
    "eos ignored": request(
        "cmpl-5",
        [1],
        max_tokens=9,
        eos_token_id=2,
        stop_token_ids=[5],
        ignored_stop_token_ids=[6],
        ignore_eos=True,
    ),
    "whole vocabulary": request("cmpl-6", [1], max_tokens=1, logprobs=-1, prompt_logprobs=-1, top_k=-1),
    "largest seed": request("cmpl-7", [1], max_tokens=1, seed=2**63 - 1),
    "constrained": request(
        "cmpl-9",
        [1],
        max_tokens=1,
        logit_bias={5: -100.0, 49151: 0.25},
        allowed_token_ids=[5, 49151],
        bad_words_token_ids=[[1, 2], [3]],
        repetition_detection=RepetitionDetection(max_pattern_size=9, min_pattern_size=2, min_count=3),
        extra_args={
            "a": "b",
            "c": [1, 0.5, "d"],
            "kv_transfer_params": {"do_remote_decode": True, "remote_block_ids": [[1]], "largest": 2**64 - 1},
            "ec_transfer_params": {"x": None},
        },
    ),
    "scheduled": GenerationRequest(
        request_id="0_cmpl-10-0",
        prompt_token_ids=[1],
        sampling=SamplingParams(max_tokens=1),
        priority=-7,
        cache_salt="🧂",
        session_id="s",
    ),
    "with an adapter": GenerationRequest(
        request_id="cmpl-11-0",
        prompt_token_ids=[1],
        sampling=SamplingParams(max_tokens=1),
        adapter=LoraAdapter(name="é", id=7, path="/x", base_model_name="m", is_3d=True),
    ),
    "schema": held_to(JsonSchema({"type": "object", "properties": {"é": {"maximum": 10**30}}})),
    "schema for guidance": held_to(JsonSchema({"type": "integer", "multipleOf": 2}), disable_any_whitespace=True),
    "schema for outlines": held_to(
        JsonSchema({"type": "object", "properties": {}, "patternProperties": {}}), disable_additional_properties=True
    ),
    "object": held_to(JsonObject(), whitespace_pattern=" ?"),
    "regex": held_to(Regex("")),
    "choice": held_to(Choice(['a "b" \\', "\0\t\n\r\x1f\x7f", "é 🎉", ""])),
    "grammar": held_to(Grammar('root ::= "a"')),
    "tag": held_to(StructuralTag({"format": {"type": "any_text"}})),
}
