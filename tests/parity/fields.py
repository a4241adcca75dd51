"""Every request field, and the values of it that are asked about."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LARGEST = 2**63 - 1

WRONG: Mapping[str, Sequence[Any]] = {
    "integer": ("five", 5.5, [5], {}),
    "number": ("warm", [0.5], {}),
    "boolean": ("maybe", 2, [], {}),
    "text": (5, True, ["a"], {}),
    "ids": ("a", 5, ["a"], [1.5], {}),
    "texts": (5, [5], {}, [["a"]]),
    "object": ("a", [], 5, True),
    "objects": ("a", {}, [5], ["a"]),
}
"""By type, values that are of another."""

TAKEN_FOR: Mapping[str, Sequence[tuple[Any, Any]]] = {
    "integer": (("5", 5), (5.0, 5), (True, 1)),
    "number": (("0.5", 0.5), (True, 1)),
    "boolean": (("true", True), (1, True), (1.0, True)),
    "ids": ((["320"], [320]), ([320.0], [320]), ([True], [1])),
}
"""Values of other types, and what of the right one they could be taken for."""


class Field(NamedTuple):
    """Defaults, edges and errors are values; beside each of them stand the fields of `beside`."""

    name: str
    type: str
    default: Any
    edges: Sequence[Any] = ()
    errors: Sequence[Any] = ()
    beside: Mapping[str, Any] = {}


SCHEMA = {"type": "object", "properties": {"cat": {"type": "integer"}}, "required": ["cat"]}
TAG = {"begin": "<a>", "schema": SCHEMA, "end": "</a>"}
STRUCTURES = {"type": "structural_tag", "structures": [TAG], "triggers": ["<a>"]}
TAG_FORMAT = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": SCHEMA}}


def nested(levels: int) -> Any:
    """An object within an object, and so on."""
    return {"a": nested(levels - 1) if levels > 1 else 1}


DEEP, TOO_DEEP = nested(9), nested(70)

SAMPLING = (
    Field("model", "text", None, ["small", ""], ["other"]),
    Field("temperature", "number", None, [0, 1, 0.7, 2, 1e-6, 0.005, 1e-9], [-0.1, 2.1, -1, 100]),
    Field("top_p", "number", None, [1, 0.5, 1e-6, 0.95], [0, 1.1, -0.5, 2]),
    Field("top_k", "integer", None, [0, -1, 1, 40, 10**6], [-2, -100]),
    Field("min_p", "number", None, [0, 0.05, 1], [-0.1, 1.1, 2]),
    Field("frequency_penalty", "number", None, [0, -2, 2, 0.5], [-2.1, 2.1, 100]),
    Field("presence_penalty", "number", None, [0, -2, 2, 0.5], [-2.1, 2.1, 100]),
    Field("repetition_penalty", "number", None, [1, 0.5, 2, 3.5, 100], [0, -1]),
    Field(
        "logit_bias",
        "object",
        None,
        [{}, {"320": 5}, {"320": -100, "351": 100}, {"320": 1000}, {"501": 1.5}, {"0320": 1}],
        [{"a": 1}, {"502": 1}, {"-1": 1}, {"320": "a"}, {"320": None}, {"1.5": 1}, {"": 1}],
    ),
    Field(
        "allowed_token_ids", "ids", None, [[320], [320, 351, 320], [0, 501]], [[], [502], [-1], [2**70], [320, None]]
    ),
    Field(
        "bad_words",
        "texts",
        [],
        [["cat"], ["cat", "the dog"], ["🎉"], [" cat"], ["cat"] * 3],
        ["cat", [""], ["a"] * 129, ["cat", ""]],
    ),
    Field("seed", "integer", None, [0, 1, -1, 42, LARGEST, -(2**63)], [2**63, -(2**63) - 1, 2**70]),
    Field("n", "integer", 1, [2, 3], [0, -1, 16385, 2**70]),
    Field(
        "stop",
        "texts",
        [],
        ["cat", ["cat"], [" sat", "dog"], ["zebra"], "t s", [" the cat sat"], ["c", "a", "t", "s"], "The"],
        ["", [""], ["a", ""], ["a", "b", "c", "d", "e"]],
    ),
    Field("stop_token_ids", "ids", [], [[320], [320, 351], [2], [351, 351]], [[-1], [502], [2**70], [320, None]]),
    Field("include_stop_str_in_output", "boolean", False, [True], beside={"stop": ["at"]}),
    Field("ignore_eos", "boolean", False, [True], beside={"max_tokens": 7}),
    Field("min_tokens", "integer", 0, [1, 6], [-1, 99, 2**70], {"max_tokens": 6}),
    Field("stream", "boolean", False, [True]),
    Field("stream_interval", "integer", None, [1, 2, 3, 100], [0, -1, 2**70]),
    Field("prompt_logprobs", "integer", None, [0, 1, 2, 20], [-1, -2, 21, 2**70]),
    Field("skip_special_tokens", "boolean", True, [False], beside={"min_tokens": 6, "max_tokens": 7}),
    Field("spaces_between_special_tokens", "boolean", True, [False]),
    Field("add_special_tokens", "boolean", None, [False, True], beside={"return_token_ids": True}),
    Field(
        "truncate_prompt_tokens",
        "integer",
        None,
        [1, 2, 3, 50, -1],
        [0, -2, 97, LARGEST],
        {"add_special_tokens": False, "return_token_ids": True},
    ),
    Field(
        "truncation_side",
        "text",
        None,
        ["left", "right"],
        ["middle", ""],
        {"truncate_prompt_tokens": 2, "add_special_tokens": False, "return_token_ids": True},
    ),
    Field("return_tokens_as_token_ids", "boolean", None, [True, False]),
    Field("return_token_ids", "boolean", None, [True, False]),
    Field(
        "repetition_detection",
        "object",
        None,
        [
            {"max_pattern_size": 4, "min_pattern_size": 1, "min_count": 2},
            {"max_pattern_size": 2, "min_count": 3},
            {"max_pattern_size": 0, "min_pattern_size": 0, "min_count": 0},
            {},
        ],
        [
            {"max_pattern_size": -1, "min_count": 2},
            {"max_pattern_size": 2, "min_pattern_size": 3, "min_count": 2},
            {"max_pattern_size": 2, "min_count": 1},
            {"max_pattern_size": "a"},
            {"max_pattern_size": 2, "min_pattern_size": -1, "min_count": 2},
        ],
    ),
    Field(
        "response_format",
        "object",
        None,
        [
            {"type": "text"},
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"name": "cat", "schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "cat", "schema": SCHEMA, "strict": True}},
            {"type": "json_schema", "json_schema": {"name": "cat", "description": "a cat", "schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "cat", "schema": {}}},
            STRUCTURES,
            TAG_FORMAT,
        ],
        [
            {},
            {"type": "xml"},
            {"type": "json_schema"},
            {"type": "json_schema", "json_schema": None},
            {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
            {"type": "json_schema", "json_schema": {"name": "cat"}},
            {"type": "json_schema", "json_schema": {"name": "cat", "schema": {"type": "broken"}}},
            {"type": "structural_tag"},
            {"type": None},
        ],
    ),
    Field(
        "structured_outputs",
        "object",
        None,
        [
            {"json": SCHEMA},
            {"json": '{"type": "object"}'},
            {"regex": "c[aou]t"},
            {"choice": ["cat", "dog"]},
            {"grammar": 'root ::= "cat" | "dog"'},
            {"json_object": True},
            {"structural_tag": '{"type": "structural_tag", "structures": [], "triggers": []}'},
            {"json": SCHEMA, "disable_any_whitespace": True},
            {"json": SCHEMA, "disable_additional_properties": True},
            {"json": SCHEMA, "whitespace_pattern": " "},
            {"regex": "cat", "json": None},
        ],
        [
            {},
            {"json": SCHEMA, "regex": "cat"},
            {"regex": "cat", "choice": ["dog"]},
            {"choice": []},
            {"choice": "cat"},
            {"choice": [5]},
            {"regex": ""},
            {"regex": "broken (["},
            {"regex": 5},
            {"grammar": "root ::= broken ("},
            {"grammar": ""},
            {"json": "{"},
            {"json": 5},
            {"json_object": False},
            {"structural_tag": "{"},
            {"json": {"type": "broken"}},
        ],
    ),
    Field("priority", "integer", 0, [1, -1, LARGEST], [2**63, -(2**63) - 1]),
    Field("cache_salt", "text", None, ["a", "s" * 128, "grain of salt"], ["", "s" * 129, "a@b", "a/b", "a\\b", "a\0b"]),
    Field("session_id", "text", None, ["one", "", "s" * 300]),
    Field(
        "vllm_xargs",
        "object",
        None,
        [{}, {"a": 1, "b": "x", "c": 0.5, "d": [1, "x", 0.5]}, {"a": []}, {"a": LARGEST}],
        [{"a": None}, {"a": {}}, {"a": [[1]]}, {"a": [None]}, {"a": 2**65}],
    ),
    Field(
        "kv_transfer_params", "object", None, [{}, {"a": 1, "b": None}, {"do_remote_decode": True}, DEEP], [TOO_DEEP]
    ),
    Field("ec_transfer_params", "object", None, [{}, {"a": [1, {"b": "c"}]}], [TOO_DEEP]),
    Field("request_id", "text", None, ["one", "", "with spaces and ü", "a" * 200]),
    Field("user", "text", None, ["someone", ""]),
    Field("length_penalty", "number", 1, [0.5, 2]),
    Field("thinking_token_budget", "integer", None, [-1], [0, 5, -2]),
    Field("routed_experts_prompt_start", "integer", 0, [1], [-1, 50]),
    Field("return_token_offsets", "boolean", False, [True]),
    Field("mm_payload", "text", "tensors", ["none"], ["other"]),
    Field("return_mm_kwargs", "boolean", None, [True, False]),
    Field("use_beam_search", "boolean", False, [True]),
    Field("watermarking", "boolean", None, [False, True]),
    Field(
        "stream_options",
        "object",
        None,
        [
            {},
            {"include_usage": True},
            {"include_usage": False},
            {"include_usage": True, "continuous_usage_stats": True},
            {"include_usage": False, "continuous_usage_stats": True},
            {"continuous_usage_stats": True},
            {"include_usage": None},
        ],
        [{"include_usage": "maybe"}, {"include_usage": 2}],
    ),
)
"""Of both endpoints."""

OF_COMPLETIONS = (
    Field(
        "prompt",
        "prompt",
        None,
        [
            "The cat",
            "🎉",
            "é 世界 🎉🎉",
            [496, 320],
            [0, 496, 320],
            [320],
            [0],
            [1, 404, 2],
            ["The cat", "A dog"],
            ["The cat"],
            [[496, 320], [42]],
            [[320]],
            "<|im_start|>user<|im_end|>",
            "The cat sat. " * 3,
            " ",
            "\n",
            ["The cat", "🎉", "A dog"],
            [320, 259],
            [501],
        ],
        ["", [], [""], [[]], ["The", ""], [-1], [502], [[502]], [2**70], ["a", 5], [[1], "a"], 5, True, {}, [None]],
    ),
    Field("max_tokens", "integer", 16, [1, 2, 85, 90], [0, -1, 97, 10**6, 2**70]),
    Field("logprobs", "integer", None, [0, 1, 2, 5, 20], [-1, -2, 21, 2**70]),
    Field("echo", "boolean", False, [True]),
    Field("suffix", "text", None, ["end", ""]),
    Field("prompt_embeds", "text", None, (), ["AAAA"]),
    Field(
        "logprob_token_ids",
        "ids",
        None,
        [[320], [320, 351, 501], [2, 0]],
        [[], [502], [-1], [320] * 129],
        {"logprobs": 1},
    ),
)
OF_CHAT = (
    Field(
        "messages",
        "objects",
        None,
        [
            [{"role": "user", "content": "One dog"}],
            [{"role": "system", "content": "Yes"}, {"role": "user", "content": "The cat"}],
            [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}, {"role": "user", "content": "C"}],
            [{"role": "user", "content": ""}],
            [{"role": "user", "content": None}],
            [{"role": "user"}],
            [{"role": "user", "content": []}],
            [{"role": "user", "content": [{"type": "text", "text": "The cat"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "The"}, {"type": "text", "text": "cat"}]}],
            [{"role": "user", "content": ["The cat"]}],
            [{"role": "user", "content": "🎉 é", "name": "Bo"}],
            [{"role": "tool", "content": "42", "tool_call_id": "x"}, {"role": "user", "content": "So"}],
            [{"role": "developer", "content": "Be kind"}, {"role": "user", "content": "So"}],
            [{"role": "elephant", "content": "So"}],
            [{"role": "assistant", "content": "So", "reasoning": "thought"}, {"role": "user", "content": "So"}],
            [{"role": "user", "content": "So", "unknown": 5}],
            [{"role": "assistant", "content": "So", "refusal": None}, {"role": "user", "content": "So"}],
        ],
        [
            [],
            [{}],
            [{"content": "a"}],
            [{"role": "user", "content": 5}],
            [{"role": 5, "content": "a"}],
            [{"role": None, "content": "a"}],
            [{"role": "user", "content": [{"type": "text"}]}],
            [{"role": "user", "content": [{"type": "text", "text": 5}]}],
            [{"role": "user", "content": [{"type": "elephant", "text": "a"}]}],
            [{"role": "user", "content": [{"text": "a"}]}],
            [{"role": "user", "content": [{}]}],
            [{"role": "user", "content": {"type": "text", "text": "a"}}],
            [{"role": "user", "content": "word " * 100}],
        ],
    ),
    Field("max_tokens", "integer", None, [1, 2, 60], [0, -1, 97, 10**6, 2**70]),
    Field("max_completion_tokens", "integer", None, [1, 2, 60], [0, -1, 97, 10**6, 2**70]),
    Field("logprobs", "boolean", False, [True]),
    Field("top_logprobs", "integer", 0, [1, 2, 5, 20], [-1, -2, 21, 2**70], {"logprobs": True}),
    Field(
        "logprob_token_ids",
        "ids",
        None,
        [[320], [320, 351, 501], [2, 0]],
        [[], [502], [-1], [320] * 129],
        {"logprobs": True},
    ),
    Field("echo", "boolean", False, [True]),
    Field("add_generation_prompt", "boolean", True, [False], beside={"return_token_ids": True}),
    Field(
        "continue_final_message",
        "boolean",
        False,
        [True],
        beside={
            "add_generation_prompt": False,
            "messages": [{"role": "user", "content": "So"}, {"role": "assistant", "content": "The cat"}],
        },
    ),
    Field("chat_template", "text", None, (), ["{{ messages[0].content }}", "", "{% if"]),
    Field(
        "chat_template_kwargs",
        "object",
        None,
        [{}, {"style": "big"}, {"style": None}, {"enable_thinking": True}, {"unknown": [1, {"a": None}]}, {"style": 5}],
        [{"tools": []}, {"documents": []}, {"messages": []}, {"chat_template": "a"}, {"tokenize": False}],
        {"return_prompt_text": True},
    ),
    Field(
        "documents",
        "objects",
        None,
        [
            [],
            [{"title": "Cats", "text": "A cat"}],
            [{"title": "One", "text": "1"}, {"title": "Two", "text": "2"}],
            [{}],
        ],
        [[{"title": 5}], [{"title": None}]],
        {"return_prompt_text": True},
    ),
    Field(
        "reasoning_effort",
        "text",
        None,
        ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
        ["hard", "", "LOW"],
        {"return_prompt_text": True},
    ),
    Field("return_prompt_text", "boolean", None, [True, False]),
    Field("include_reasoning", "boolean", True, [False]),
    Field("parallel_tool_calls", "boolean", True, [False]),
    Field("tools", "objects", None, (), [[], [{"type": "function", "function": {"name": "f"}}]]),
    Field("tool_choice", "text", "none", (), ["auto", "required", "other"]),
    Field("media_io_kwargs", "object", None, [{}], [{"image": {"a": 1}}, {"image": 5}]),
    Field("mm_processor_kwargs", "object", None, [{}], [{"a": 1}]),
)
