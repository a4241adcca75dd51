"""What is asked of the routes for tokens: every field of theirs, with values that have a meaning and that have none."""

from collections.abc import Iterator
from typing import Any, NamedTuple

Json = dict[str, Any]

TOKENIZE, DETOKENIZE, GENERATE, ABORT = (
    "/tokenize",
    "/detokenize",
    "/inference/v1/generate",
    "/inference/v1/abort_requests",
)
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MESSAGES = [{"role": "user", "content": "the cat sat on the mat"}]

NO_TOKEN = 99999
"""An id beyond the vocabulary."""

UNREAD = ("documents", "reasoning_effort")
"""Fields of /tokenize that vLLM does not read."""


class Case(NamedTuple):
    path: str
    body: Any
    meant: Any = None
    """The body with values of the right type in place of those that could be taken for them."""

    @property
    def name(self) -> str:
        return f"{self.path} {self.body}"

    @property
    def like(self) -> "Case | None":
        """One whose answer says whether a difference is meant: of the right types, without nulls, in one piece, or
        without what vLLM does not read."""
        if self.meant is not None or not isinstance(self.body, dict):
            return None if self.meant is None else Case(self.path, self.meant)
        told = {name: value for name, value in _without_nulls(self.body).items() if name not in UNREAD}
        if told.get("sampling_params", {}).get("prompt_logprobs") is not None:
            told.pop("stream", None)
        return None if told == self.body else Case(self.path, told)


def _without_nulls(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _without_nulls(value) for name, value in told.items() if value is not None}
    return told


def _tokenize() -> Iterator[Case]:
    for body in (
        {},
        {"add_special_tokens": True},
        {"add_special_tokens": False},
        {"return_token_strs": True},
        {"return_token_strs": False},
        {"return_token_strs": None},
        {"model": "small"},
        {"model": ""},
        {"model": None},
        {"model": "other"},
        {"unknown": 1},
    ):
        yield Case(TOKENIZE, {"prompt": "the cat é🎉"} | body)
        yield Case(TOKENIZE, {"messages": MESSAGES} | body)
    yield Case(TOKENIZE, {"prompt": ""})
    yield Case(TOKENIZE, {"prompt": "the " * 200})
    yield Case(TOKENIZE, {"prompt": "<|im_end|> the", "return_token_strs": True})
    for how in (
        {"add_generation_prompt": True},
        {"add_generation_prompt": False},
        {"add_generation_prompt": False, "continue_final_message": True},
        {"continue_final_message": True},
        {"add_generation_prompt": True, "continue_final_message": True},
        {"chat_template": "{{ messages[0].content }}"},
        {"chat_template": "{% for %}"},
        {"chat_template_kwargs": {"style": "big"}},
        {"chat_template_kwargs": {"style": None}},
        {"media_io_kwargs": None},
        {"tools": None},
    ):
        yield Case(TOKENIZE, {"messages": MESSAGES} | how)
    inside = {"messages": MESSAGES, "chat_template_kwargs": {"chat_template": "x"}}
    yield Case(TOKENIZE, inside)
    yield Case(TOKENIZE, {"messages": [{"role": "user", "content": [{"type": "text", "text": "the cat"}]}]})
    yield Case(TOKENIZE, {"messages": []})
    yield Case(TOKENIZE, {"messages": MESSAGES, "prompt": "the"})
    for field in ({"documents": [{"title": "the", "text": "cat"}]}, {"reasoning_effort": "low"}):
        yield Case(TOKENIZE, {"messages": MESSAGES} | field)
    for wrong in ({}, {"prompt": ["a"]}, {"prompt": 5}, {"prompt": None}, {"messages": "a"}, {"messages": [5]}):
        yield Case(TOKENIZE, wrong)
    yield Case(TOKENIZE, {"prompt": "a", "add_special_tokens": None})
    yield Case(TOKENIZE, {"prompt": "a", "add_special_tokens": "false"}, {"prompt": "a", "add_special_tokens": False})


def _detokenize() -> Iterator[Case]:
    for token_ids in ([], [0], [2, 5, 9], [170], list(range(3, 90))):
        yield Case(DETOKENIZE, {"tokens": token_ids})
    yield Case(DETOKENIZE, {"tokens": [5], "model": "small", "unknown": 1})
    yield Case(DETOKENIZE, {"tokens": [5], "model": "other"})
    for wrong in ([-1], [1.5], [None], "ab", None, [2**63]):
        yield Case(DETOKENIZE, {"tokens": wrong})
    yield Case(DETOKENIZE, {})
    for token_ids in ([5.0], ["5"]):
        yield Case(DETOKENIZE, {"tokens": token_ids}, {"tokens": [5]})
    yield Case(DETOKENIZE, {"tokens": [NO_TOKEN]})


SAMPLING: list[Json] = [
    {},
    {"max_tokens": 1},
    {"max_tokens": None},
    {"min_tokens": 2},
    {"n": 2, "seed": 1},
    {"temperature": 0},
    {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "min_p": 0.1},
    {"presence_penalty": 0.5, "frequency_penalty": -0.5, "repetition_penalty": 1.2},
    {"seed": 2},
    {"seed": None},
    {"seed": -1},
    {"stop": "cat"},
    {"stop": ["cat", "dog", "mat", "sat", "on"]},
    {"stop": [], "bad_words": [], "stop_token_ids": []},
    {"stop": "cat", "include_stop_str_in_output": True},
    {"stop_token_ids": [310]},
    {"stop_token_ids": [310], "include_stop_str_in_output": True},
    {"ignore_eos": True},
    {"prompt_logprobs": 0},
    {"prompt_logprobs": 2},
    {"logit_bias": {"5": 300}},
    {"allowed_token_ids": [5, 6]},
    {"bad_words": ["cat"]},
    {"repetition_detection": {"max_pattern_size": 3, "min_pattern_size": 1, "min_count": 2}},
    {"extra_args": {"a": [1]}},
    {"structured_outputs": {"regex": "a+"}},
    {"structured_outputs": {"json": {"type": "object"}}},
    {"skip_special_tokens": False},
    {"spaces_between_special_tokens": False},
    {"detokenize": False},
    {"stream_interval": 3},
    {"output_kind": 0, "skip_clone": True, "skip_reading_prefix_cache": False, "flat_logprobs": False},
    {"watermarking": None, "thinking_token_budget": None, "trace_decode_token_ids": None},
    {"unknown": 1},
]
SAMPLING_ERRORS: list[Json] = [
    {"max_tokens": 0},
    {"max_tokens": 1.5},
    {"max_tokens": "a"},
    {"n": 0},
    {"n": 2, "temperature": 0},
    {"temperature": -1},
    {"temperature": 3},
    {"top_p": 0},
    {"top_k": -2},
    {"min_p": 2},
    {"presence_penalty": 3},
    {"frequency_penalty": -3},
    {"repetition_penalty": 0},
    {"min_tokens": -1},
    {"min_tokens": 3, "max_tokens": 2},
    {"stop": [""]},
    {"stop": "cat", "detokenize": False},
    {"logprobs": 21},
    {"logprobs": -1},
    {"logprobs": -2},
    {"prompt_logprobs": 21},
    {"logit_bias": {"a": 1}},
    {"logit_bias": {"99999": 1}},
    {"stop_token_ids": [NO_TOKEN]},
    {"allowed_token_ids": []},
    {"allowed_token_ids": [NO_TOKEN]},
    {"bad_words": "cat"},
    {"repetition_detection": {"max_pattern_size": 1, "min_pattern_size": 2}},
    {"structured_outputs": {}},
    {"structured_outputs": {"regex": "a", "choice": ["b"]}},
    {"stream_interval": 0},
]
PROMPT = [3, 4, 310, 5, 311, 6]


def _generate() -> Iterator[Case]:
    asked = {"token_ids": PROMPT, "request_id": "r"}
    for sampling in SAMPLING:
        for stream in (False, True):
            for mode in ("tokens", "text"):
                if mode == "text" and sampling.get("detokenize") is False:
                    continue
                body = asked | {"sampling_params": {"max_tokens": 6} | sampling, "stream": stream, "output_mode": mode}
                yield Case(GENERATE, body)
    for width in (0, 1, 3):
        for mode in ("tokens", "text"):
            for stream in (False, True):
                params = {"max_tokens": 4, "logprobs": width}
                body = {"sampling_params": params, "stream": stream, "output_mode": mode}
                yield Case(GENERATE, asked | body)
                odd = asked | body | {"token_ids": [3, 4, 260, 5, 261, 6]}
                yield Case(GENERATE, odd)
    for fields in (
        {"return_token_ids": True},
        {"return_token_ids": False},
        {"model": "small"},
        {"model": ""},
        {"model": "other"},
        {"cache_salt": "s"},
        {"cache_salt": "a/b"},
        {"priority": 2},
        {"kv_transfer_params": {"a": 1}},
        {"ec_transfer_params": {"a": {"b": 1}}},
        {"token_offsets": [[0, 1]] * 6},
        {"features": None, "content_parts": None, "reasoning_ended": None, "reasoning_parser_kwargs": None},
        {"stream_options": {"include_usage": True}},
        {"parse_context": {"a": 1}},
        {"output_mode": "other"},
        {"unknown": 1},
    ):
        yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 3}} | fields)
        yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 3}, "stream": True} | fields)
    for options in ({"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}, {}, None):
        params = {"max_tokens": 3, "n": 2, "seed": 1}
        yield Case(GENERATE, asked | {"sampling_params": params, "stream": True, "stream_options": options})
    for sampling in SAMPLING_ERRORS:
        yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 3} | sampling})
    yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 97}})
    yield Case(GENERATE, asked | {"sampling_params": {"logprob_token_ids": []}})
    for params in ({"logprob_token_ids": [5, 6]}, {"logprobs": 2, "logprob_token_ids": [5, 6]}):
        yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 3} | params})
    for wrong in ([], [-1], [1.5], ["a"], "ab", None, [NO_TOKEN], [[1]], [3] * 96, [3] * 5000):
        yield Case(GENERATE, asked | {"sampling_params": {}, "token_ids": wrong})
    for missing in ({"token_ids": [3]}, {"sampling_params": {}}, {"token_ids": [3], "sampling_params": None}):
        yield Case(GENERATE, missing)
    for params, right in (
        ({"max_tokens": "2"}, {}),
        ({"max_tokens": 2.0}, {}),
        ({"logprobs": True}, {"logprobs": 1}),
    ):
        bodies = [asked | {"sampling_params": {"max_tokens": 2} | each} for each in (params, right)]
        yield Case(GENERATE, *bodies)
    for params in ({"temperature": None}, {"min_tokens": None}):
        yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 2} | params})
    yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 2}, "priority": None})
    yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 2}, "token_ids": [NO_TOKEN], "stream": True})
    for fields in ({"features": {"mm_hashes": {}, "mm_placeholders": {}}}, {"reasoning_ended": True}):
        yield Case(GENERATE, asked | {"sampling_params": {"max_tokens": 2}} | fields)
    yield Case(GENERATE, asked | {"sampling_params": {"trace_decode_token_ids": [1]}})


def _abort() -> Iterator[Case]:
    for body in ({"request_ids": ["a"]}, {"request_ids": []}, {}):
        yield Case(ABORT, body)
    for wrong in ({"request_ids": "a"}, []):
        yield Case(ABORT, wrong)


def _render() -> Iterator[Case]:
    for body in (
        {"max_tokens": 3},
        {"max_tokens": 3, "temperature": 0.5, "top_p": 0.9, "top_k": 2, "min_p": 0.1},
        {"max_tokens": 3, "n": 2, "seed": 4},
        {"max_tokens": 3, "stop": ["a"], "stop_token_ids": [5], "include_stop_str_in_output": True},
        {"max_tokens": 3, "logit_bias": {"5": 300}, "allowed_token_ids": [5], "bad_words": ["cat"]},
        {"max_tokens": 3, "ignore_eos": True, "min_tokens": 1, "skip_special_tokens": False},
        {"max_tokens": 3, "vllm_xargs": {"a": 1}, "kv_transfer_params": {"b": 1}, "ec_transfer_params": {"c": 1}},
        {"max_tokens": 3, "priority": 2, "cache_salt": "s", "model": "small"},
        {"max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}},
        {"max_tokens": 3, "return_token_ids": True, "return_tokens_as_token_ids": True},
        {"max_tokens": 3, "truncate_prompt_tokens": 4},
        {"max_tokens": 3, "prompt_logprobs": 1},
        {"max_tokens": 3, "presence_penalty": 0.5, "frequency_penalty": 0.25, "repetition_penalty": 1.5},
        {"max_tokens": 3, "response_format": {"type": "json_object"}},
        {"max_tokens": 3, "structured_outputs": {"choice": ["a", "b"]}},
        {"max_tokens": 3, "add_special_tokens": False},
        {"max_tokens": 3, "repetition_detection": {"max_pattern_size": 3, "min_pattern_size": 1, "min_count": 2}},
        {"max_tokens": 0},
        {"max_tokens": 3, "temperature": 3},
        {"max_tokens": 3, "model": "other"},
        {"max_tokens": 3, "use_beam_search": True},
    ):
        asked = {"request_id": "r"} | body
        yield Case(f"{CHAT}/render", {"messages": MESSAGES} | asked)
        yield Case(f"{COMPLETIONS}/render", {"prompt": "the cat sat"} | asked)
    for chat in (
        {},
        {"max_completion_tokens": 3},
        {"logprobs": True},
        {"logprobs": True, "top_logprobs": 2},
        {"echo": True, "logprobs": True, "top_logprobs": 2},
        {"chat_template_kwargs": {"style": "big"}},
        {"documents": [{"title": "the", "text": "cat"}]},
        {"reasoning_effort": "low"},
        {"add_generation_prompt": False, "continue_final_message": True},
        {"kv_transfer_params": {"prompt_token_ids": [3, 4, 5]}},
        {"messages": []},
        {"messages": None},
    ):
        yield Case(f"{CHAT}/render", {"messages": MESSAGES, "request_id": "r"} | chat)
    chosen = {"logprobs": True, "logprob_token_ids": [5, 6], "request_id": "r"}
    yield Case(f"{CHAT}/render", {"messages": MESSAGES} | chosen)
    for prompt in ("the", [3, 4], ["the", "cat"], [[3], [4, 5]], "", [], None):
        yield Case(f"{COMPLETIONS}/render", {"prompt": prompt, "max_tokens": 3, "request_id": "r"})
    yield Case(
        f"{COMPLETIONS}/render", {"prompt": "the", "logprobs": 2, "echo": True, "max_tokens": 3, "request_id": "r"}
    )
    yield Case(f"{COMPLETIONS}/render", {"prompt": "the", "request_id": "r"})
    greedy = {"prompt": "the", "temperature": 0, "top_p": 0.5, "max_tokens": 3, "request_id": "r"}
    yield Case(f"{COMPLETIONS}/render", greedy)


def _row(token_id: int, *others: int) -> Json:
    own = {"token_id": token_id, "logprob": -0.5, "rank": 1}
    return own | {"top_logprobs": [own, *({"token_id": one, "logprob": -1.5, "rank": 2} for one in others)]}


def _derender() -> Iterator[Case]:
    plain = {"index": 0, "token_ids": [310, 315, 320], "finish_reason": "length"}
    scored = plain | {"logprobs": {"content": [_row(310, 330), _row(315, 331), _row(320, 332)]}}
    ended = {"index": 0, "token_ids": [310, 2], "finish_reason": "stop"}
    for choice in (plain, scored, ended, plain | {"stop_reason": 5}):
        generated = {"request_id": "r", "choices": [choice]}
        for told in (
            {},
            {"prompt_tokens": 4},
            {"prompt_tokens": 2, "prompt_token_ids": [3, 4]},
            {"model": "small"},
        ):
            body = {"generate_response": generated} | told
            yield Case(f"{CHAT}/derender", body)
            listed = {name: told[name] if name == "model" else [told[name]] for name in told}
            yield Case(f"{COMPLETIONS}/derender", {"generate_responses": [generated]} | listed)
    for unsaid in ({"index": 0, "token_ids": [310]}, plain | {"finish_reason": None}):
        body = {"generate_response": {"request_id": "r", "choices": [unsaid]}}
        yield Case(f"{CHAT}/derender", body)
    two = {"request_id": "r", "choices": [plain, plain | {"index": 1, "token_ids": [312]}]}
    passed = {"kv_transfer_params": {"a": 1}, "ec_transfer_params": None, "unknown": 1}
    yield Case(f"{CHAT}/derender", {"generate_response": two | passed})
    yield Case(f"{COMPLETIONS}/derender", {"generate_responses": [two, two]})
    asked = {"messages": MESSAGES, "return_token_ids": True, "logprobs": True, "top_logprobs": 2}
    whole = {"generate_response": {"request_id": "r", "choices": [scored]}, "chat_request": asked}
    yield Case(f"{CHAT}/derender", whole)
    shown = whole | {"prompt_token_ids": [3, 4], "prompt_tokens": 2}
    yield Case(f"{CHAT}/derender", shown)
    yield Case(f"{CHAT}/derender", whole | {"chat_request": asked | {"top_logprobs": 1}})
    yield Case(f"{CHAT}/derender", whole | {"chat_request": asked | {"return_tokens_as_token_ids": True}})
    echo = {"prompt": [3, 4], "echo": True}
    responses = {"generate_responses": [{"request_id": "r", "choices": [plain]}], "completion_request": echo}
    yield Case(f"{COMPLETIONS}/derender", responses)
    counted = {"generate_response": {"request_id": "r", "choices": [plain]}, "prompt_token_ids": [3, 4]}
    yield Case(f"{CHAT}/derender", counted)
    usage = {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    for chunk in (
        {"choices": [{"index": 0, "token_ids": [310, 315]}]},
        {"choices": [{"index": 1, "token_ids": [310, 312]}], "usage": usage},
        {"choices": [{"index": 0, "token_ids": [310], "logprobs": {"content": [_row(310, 330)]}}]},
        {"choices": [plain]},
        {"choices": [], "usage": usage},
    ):
        for path in (CHAT, COMPLETIONS):
            for told in ({}, {"prompt_tokens": 2, "prompt_token_ids": [3, 4]}):
                body = {"stream": True, "generate_chunk": {"request_id": "r"} | chunk} | told
                yield Case(f"{path}/derender", body)
    for wrong in (
        {},
        {"generate_response": {"choices": [{"index": 0, "token_ids": []}]}},
        {"generate_response": {"choices": [{"index": 0, "token_ids": [-1]}]}},
        {"generate_response": {"choices": [plain], "output_mode": "text"}},
        {"generate_response": {"choices": [plain]}, "model": "other"},
        {"stream": True, "generate_chunk": {"choices": [plain, plain]}},
        {"stream": True},
    ):
        yield Case(f"{CHAT}/derender", wrong)
    for choices in ([], [plain | {"token_ids": [NO_TOKEN]}], [plain | {"logprobs": {"content": [_row(5)]}}]):
        yield Case(f"{CHAT}/derender", {"generate_response": {"request_id": "r", "choices": choices}})


CASES = [*_tokenize(), *_detokenize(), *_generate(), *_abort(), *_render(), *_derender()]
