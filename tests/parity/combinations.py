"""Fields together, headers, and what is asked of the server that has flags."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from tests.parity.case import CHAT, COMPLETIONS, Case, Kind
from tests.parity.fields import LARGEST

USAGE = {"stream_options": {"include_usage": True}, "stream": True}
RUNNING_USAGE = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}, "stream": True}
ROWS = {COMPLETIONS: {"logprobs": 2}, CHAT: {"logprobs": True, "top_logprobs": 2}}
TEXTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    path: [
        {"prompt": text} if path == COMPLETIONS else {"messages": [{"role": "user", "content": text}]} for text in texts
    ]
    for path, texts in product((COMPLETIONS, CHAT), [("The 🎉 é", "cat 世界. ", "🎉🎉")])
}
"""With characters in several tokens."""
TURNS = [{"role": "user", "content": "So"}, {"role": "assistant", "content": "The cat"}]

OF_BOTH: Sequence[Mapping[str, Any]] = (
    {},
    {"n": 2, "seed": 1},
    {"n": 3, "seed": 0, "return_token_ids": True},
    {"n": 2, "seed": -1},
    {"n": 2, "seed": LARGEST},
    {"n": 2, "stop": ["cat"]},
    {"n": 2, "temperature": 0},
    {"n": 2, "temperature": 1e-9},
    {"n": 2, "request_id": "mine", "session_id": "one"},
    {"n": 2, "seed": 2, "stop": ["sat"], **USAGE},
    {"n": 2, "seed": 2, "return_token_ids": True, **RUNNING_USAGE},
    {"n": 2, "seed": 3, "stream_interval": 2},
    {"n": 2, "prompt_logprobs": 1},
    {"stop": [" sat"], "include_stop_str_in_output": True, "min_tokens": 2},
    {"stop": ["cat"], "min_tokens": 3},
    {"stop": ["cat sat", "he"], "include_stop_str_in_output": True, "seed": 1},
    {"stop": ["cat"], "return_token_ids": True, **USAGE},
    {"stop_token_ids": [320], "include_stop_str_in_output": True, "min_tokens": 1},
    {"stop_token_ids": [320], "min_tokens": 3, "ignore_eos": True, "max_tokens": 6},
    {"stop_token_ids": [320], "stop": [" cat"]},
    {"stop_token_ids": [320], "return_token_ids": True},
    {"ignore_eos": True, "skip_special_tokens": False, "max_tokens": 6, "return_token_ids": True},
    {"ignore_eos": True, "min_tokens": 6, "max_tokens": 6, "seed": 2},
    {"stream_interval": 2, "return_token_ids": True},
    {"stream_interval": 3, **RUNNING_USAGE},
    {"prompt_logprobs": 2, "return_tokens_as_token_ids": True},
    {"prompt_logprobs": 0, "return_token_ids": True},
    {"temperature": 0, "top_p": 0.5, "top_k": 3, "min_p": 0.1, "seed": 1},
    {"temperature": 0.005, "frequency_penalty": 1, "presence_penalty": -1, "repetition_penalty": 1.5},
    {"min_tokens": 3, "max_tokens": 2},
    {"logit_bias": {"320": 1}, "allowed_token_ids": [320, 350], "bad_words": ["dog", "the cat"]},
    {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "c[au]t"}},
    {"response_format": {"type": "text"}, "structured_outputs": {"choice": ["cat", "dog"]}},
    {"response_format": {"type": "json_object"}, "structured_outputs": {"disable_any_whitespace": True}},
    {"response_format": {"type": "json_object"}, "structured_outputs": {"json_object": True}},
    {"response_format": {"type": "json_object"}, "n": 2, "temperature": 1},
    {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}, "structured_outputs": {"regex": "a"}},
    {"vllm_xargs": {"a": 1}, "kv_transfer_params": {"b": 2}, "ec_transfer_params": {"c": 3}},
    {"cache_salt": "salt", "priority": 5, "session_id": "one", "user": "two"},
    {"vllm_xargs": {"session_id": "three"}},
    {"truncate_prompt_tokens": 3, "truncation_side": "right", "add_special_tokens": True, "return_token_ids": True},
    {"truncate_prompt_tokens": 3, "truncation_side": "left", "add_special_tokens": True, "return_token_ids": True},
    {"truncate_prompt_tokens": -1, "max_tokens": 90},
    {"unknown": 1, "guided_json": {}, "best": [None]},
    {"stream_options": {"unknown": 1, "include_usage": True}, "stream": True},
    {"stream_options": {}, "stream": True},
    {"thinking_token_budget": -1, "include_reasoning": True, "length_penalty": 0.5, "use_beam_search": False},
    USAGE,
    RUNNING_USAGE,
)
WITH_ROWS: Sequence[Mapping[str, Any]] = (
    {},
    {"return_tokens_as_token_ids": True},
    {"return_token_ids": True, "return_tokens_as_token_ids": True},
    {"n": 2, "seed": 1},
    {"stop": ["cat"]},
    {"stop": ["at"], "include_stop_str_in_output": True},
    {"skip_special_tokens": False, "ignore_eos": True, "max_tokens": 6},
    {"stream_interval": 2},
    {"prompt_logprobs": 1},
    {"logprob_token_ids": [320, 2]},
    {"return_token_ids": True, **RUNNING_USAGE},
)
"""Beside scores."""

OF_COMPLETIONS: Sequence[Mapping[str, Any]] = (
    {"prompt": ["The cat", "A dog"], "n": 2, "seed": 1},
    {"prompt": ["The cat", "A dog"], "return_token_ids": True, **RUNNING_USAGE},
    {"prompt": [[496, 320], [42]], "echo": True, "logprobs": 1},
    {"prompt": ["The cat", "A dog"], "echo": True, "max_tokens": 0, "logprobs": 1},
    {"prompt": ["The cat", "A dog"], "stop": ["at", "og"]},
    {"prompt": ["The", "word " * 100]},
    {"prompt": "The cat", "max_tokens": 95},
    {"prompt": "word " * 94, "max_tokens": 5},
    {"prompt": [320] * 95, "max_tokens": 5},
    {"prompt": [320] * 96, "max_tokens": 5},
    {"prompt": [320] * 97, "truncate_prompt_tokens": 5},
    {"echo": True, "logprobs": 1},
    {"echo": True, "logprobs": 0, "return_tokens_as_token_ids": True},
    {"echo": True, "return_token_ids": True},
    {"echo": True, "max_tokens": 0},
    {"echo": True, "max_tokens": 0, "logprobs": 1},
    {"echo": True, "max_tokens": 0, "prompt_logprobs": 1},
    {"echo": True, "max_tokens": 0, "logprob_token_ids": [320], "logprobs": 1},
    {"echo": True, "max_tokens": 1, **RUNNING_USAGE},
    {"echo": True, "n": 2, "seed": 1},
    {"echo": True, "n": 2, "logprobs": 1},
    {"echo": True, "prompt": [0, 496, 320], "logprobs": 1},
    {"echo": True, "prompt": [0, 496, 320], "skip_special_tokens": False},
    {"echo": True, "prompt": "🎉 cat", "logprobs": 1},
    {"echo": True, "stop": ["cat"]},
    {"echo": True, "stream_interval": 3},
    {"echo": True, "suffix": "a"},
    {"logprob_token_ids": [320]},
    {"logprobs": 1, "logprob_token_ids": [320], "return_tokens_as_token_ids": True},
    {"suffix": None, "prompt_embeds": None, "echo": None, "logprobs": None, "n": 1},
    {"top_logprobs": 2},
    {"max_completion_tokens": 2},
    {"messages": [{"role": "user", "content": "So"}]},
    {"truncate_prompt_tokens": 3, "return_token_ids": True},
    {"truncate_prompt_tokens": 2, "truncation_side": "left", "add_special_tokens": False, "echo": True},
    {"prompt": [496, 320, 350], "truncate_prompt_tokens": 2, "echo": True},
    {"echo": True, "logprobs": 1, "prompt_logprobs": 3},
    {"echo": True, "logprobs": 3, "prompt_logprobs": 1},
    {"prompt": [259, 239, 234, 320], "echo": True, "logprobs": 1},
    {"prompt": [259, 239, 234, 320], "prompt_logprobs": 1, "return_token_ids": True},
    {"prompt": [259, 239, 496], "echo": True, "logprobs": 0},
)
OF_CHAT: Sequence[Mapping[str, Any]] = (
    {"messages": TURNS, "echo": True},
    {"messages": TURNS, "echo": True, "add_generation_prompt": False, "continue_final_message": True},
    {"messages": TURNS, "echo": True, "n": 2, "seed": 1, "return_token_ids": True},
    {"messages": TURNS, "echo": True, **RUNNING_USAGE},
    {"messages": TURNS, "add_generation_prompt": False},
    {"messages": TURNS, "continue_final_message": True},
    {"messages": TURNS, "continue_final_message": True, "add_generation_prompt": True},
    {"messages": TURNS, "continue_final_message": True, "add_generation_prompt": False, "return_prompt_text": True},
    {"documents": [{"title": "Cats", "text": "A cat"}], "reasoning_effort": "low", "return_prompt_text": True},
    {"chat_template_kwargs": {"style": "big", "enable_thinking": False}, "reasoning_effort": "high"},
    {"chat_template_kwargs": {"reasoning_effort": "low"}, "return_prompt_text": True},
    {"top_logprobs": 2},
    {"top_logprobs": 0},
    {"top_logprobs": 2, "logprobs": False},
    {"top_logprobs": None, "logprobs": True},
    {"logprob_token_ids": [320]},
    {"max_tokens": 1, "max_completion_tokens": 2},
    {"max_tokens": 0, "max_completion_tokens": 2},
    {"max_tokens": None, "max_completion_tokens": None},
    {"return_prompt_text": True, "return_token_ids": True},
    {"return_prompt_text": True, "n": 2, "seed": 1},
    {"add_special_tokens": True, "return_token_ids": True, "return_prompt_text": True},
    {"parallel_tool_calls": False, "tool_choice": "none", "include_reasoning": True},
    {"prompt": "The cat"},
    {"truncate_prompt_tokens": 5, "return_token_ids": True, "max_tokens": 3},
)
HEADERS: Sequence[Mapping[str, str]] = (
    {"x-request-id": "mine"},
    {"x-request-id": ""},
    {"x-session-id": "one"},
    {"x-vllm-priority": "3"},
    {"x-vllm-priority": "high"},
    {"x-data-parallel-rank": "0"},
    {"x-data-parallel-rank": "x"},
)
FLAGGED: Sequence[Mapping[str, Any]] = (
    {},
    {"max_tokens": 4},
    {"max_tokens": 20, "ignore_eos": True},
    {"max_tokens": None, "ignore_eos": True},
    {"temperature": 1, "top_k": -1, "repetition_penalty": 1},
    {"temperature": None, "top_p": 0.5, "min_p": 0},
    {"return_tokens_as_token_ids": False},
    {"return_tokens_as_token_ids": True},
    {"stream_options": {"include_usage": False}, "stream": True},
    {"stream_interval": 3},
    {"n": 2, "seed": 1},
    {"logprob_token_ids": [320]},
    {"prompt_logprobs": 6},
    {"prompt_logprobs": 5},
)
"""Beside scores, of the server with flags."""
FLAGGED_CHAT: Sequence[Mapping[str, Any]] = (
    {"chat_template": "{{ messages[0].content }}<|im_end|>", "return_prompt_text": True},
    {"chat_template": "{{ style }}", "return_prompt_text": True},
    {"chat_template": "{% if"},
    {"chat_template": ""},
    {"chat_template_kwargs": {"style": "red"}, "return_prompt_text": True},
    {"chat_template_kwargs": {"style": None}, "return_prompt_text": True},
    {"reasoning_effort": "low", "return_prompt_text": True},
    {"messages": [{"role": "bot", "content": "The cat"}], "echo": True},
    {"messages": TURNS, "echo": True},
)


def combinations(path: str, plain: Mapping[str, Any]) -> Iterator[Case]:
    """Each in one piece and, if it is not so already, streamed."""
    own = OF_COMPLETIONS if path == COMPLETIONS else OF_CHAT
    told = [
        *OF_BOTH,
        *own,
        *({**ROWS[path], **beside, **text} for beside in WITH_ROWS for text in ({}, *TEXTS[path][:2])),
    ]
    told += [
        {**text, **beside} for text in TEXTS[path] for beside in ({}, {"return_token_ids": True}, {"stop": ["🎉"]})
    ]
    flagged = [{**ROWS[path], **fields} for fields in FLAGGED] + list(FLAGGED_CHAT if path == CHAT else ())
    cases = [
        *(_case(path, plain, fields) for fields in told),
        *(_case(path, plain, {"request_id": "body", "priority": 2}, headers=headers) for headers in HEADERS),
        *(_case(path, plain, fields, server="flagged") for fields in flagged),
    ]
    for case in cases:
        yield case
        if not case.streams:
            yield case.streamed()


def _case(path: str, plain: Mapping[str, Any], fields: Mapping[str, Any], **more: Any) -> Case:
    said = ", ".join(f"{name}={value!r}" for name, value in {**fields, **more}.items()) or "nothing more"
    name = f"{'chat' if path == CHAT else 'completions'}: {said}"
    return Case(name, path, {**plain, **fields}, tuple(fields), Kind.COMBINED, **more)
