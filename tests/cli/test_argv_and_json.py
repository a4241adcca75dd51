"""Flags on the command line and keys of --args-json settle the same."""

import json
from typing import Any

import pytest

from adapters.inbound.cli.flags import SHARED
from adapters.inbound.cli.settings import (
    HandshakeSettings,
    HttpSettings,
    LoraModule,
    LoraSettings,
    ModelSettings,
    server_options,
)
from application.options import ServerOptions
from tests.cli.commands import Refusals, frontend, serve

MODEL = ModelSettings(model="m", served_model_names=("m",))

CASES: list[tuple[list[str], dict[str, Any], str, dict[str, Any]]] = [
    (["--host", "127.0.0.1"], {"host": "127.0.0.1"}, "http", {"host": "127.0.0.1"}),
    (["--port", "0"], {"port": 0}, "http", {"port": 0}),
    (["--uds=/tmp/n.sock"], {"uds": "/tmp/n.sock"}, "http", {"uds": "/tmp/n.sock"}),
    (
        ["--http-timeout-keep-alive", "7"],
        {"http_timeout_keep_alive": 7},
        "http",
        {"http_timeout_keep_alive": 7},
    ),
    (
        ["--http-max-request-body-size", "0"],
        {"http_max_request_body_size": 0},
        "http",
        {"http_max_request_body_size": 0},
    ),
    (["--shutdown-timeout", "30"], {"shutdown_timeout": 30}, "http", {"shutdown_timeout": 30}),
    (["--log-level", "debug"], {"log_level": "DEBUG"}, "http", {"log_level": "DEBUG"}),
    (["--root-path", "/api"], {"root_path": "/api"}, "http", {"root_path": "/api"}),
    (["--enable-request-id-headers"], {"enable_request_id_headers": True}, "http", {"enable_request_id_headers": True}),
    (["--disable-fastapi-docs"], {"disable_fastapi_docs": True}, "http", {"disable_fastapi_docs": True}),
    (["--enable-scale-out"], {"enable_scale_out": True}, "http", {"enable_scale_out": True}),
    (["--tokens-only"], {"tokens_only": True}, "http", {"tokens_only": True}),
    (
        ["--enable-tokenizer-info-endpoint"],
        {"enable_tokenizer_info_endpoint": True},
        "http",
        {"enable_tokenizer_info_endpoint": True},
    ),
    (["--api-key", "a", "b"], {"api_key": ["a", "b"]}, "http", {"api_key": ("a", "b")}),
    (["--api-key", "a,b"], {"api_key": "a,b"}, "http", {"api_key": ("a,b",)}),
    (
        ["--allowed-origins", '["https://a.example"]'],
        {"allowed_origins": ["https://a.example"]},
        "http",
        {"allowed_origins": ("https://a.example",)},
    ),
    (["--allowed-methods", '["GET"]'], {"allowed_methods": ["GET"]}, "http", {"allowed_methods": ("GET",)}),
    (["--allowed-headers", '["x-a"]'], {"allowed_headers": ["x-a"]}, "http", {"allowed_headers": ("x-a",)}),
    (["--allow-credentials"], {"allow_credentials": True}, "http", {"allow_credentials": True}),
    (
        ["--enable-force-include-usage"],
        {"enable_force_include_usage": True},
        "model",
        {"enable_force_include_usage": True},
    ),
    (
        ["--enable-prompt-tokens-details"],
        {"enable_prompt_tokens_details": True},
        "model",
        {"enable_prompt_tokens_details": True},
    ),
    (
        ["--enable-per-request-metrics"],
        {"enable_per_request_metrics": True},
        "model",
        {"enable_per_request_metrics": True},
    ),
    (["--sse-keep-alive-interval", "15"], {"sse_keep_alive_interval": 15}, "http", {"sse_keep_alive_interval": 15}),
    (["--fingerprint-mode", "hash"], {"fingerprint_mode": "hash"}, "model", {"fingerprint_mode": "hash"}),
    (["--fingerprint-value", "f"], {"fingerprint_value": "f"}, "model", {"fingerprint_value": "f"}),
    (["--stream-interval", "4"], {"stream_interval": 4}, "model", {"stream_interval": 4}),
    (
        ["--override-generation-config", '{"top_k": 5}'],
        {"override_generation_config": {"top_k": 5}},
        "model",
        {"override_generation_config": {"top_k": 5}},
    ),
    (["--override-generation-config", "{}"], {"override_generation_config": {}}, "model", {}),
    (["--model", "m"], {"model": "m"}, "model", {}),
    (["--served-model-name", "a", "b"], {"served_model_name": ["a", "b"]}, "model", {"served_model_names": ("a", "b")}),
    (["--served-model-name", "a"], {"served_model_name": "a"}, "model", {"served_model_names": ("a",)}),
    (["--tokenizer", "t"], {"tokenizer": "t"}, "model", {"tokenizer": "t"}),
    (["--revision", "main"], {"revision": "main"}, "model", {"revision": "main"}),
    (["--tokenizer-revision", "v1"], {"tokenizer_revision": "v1"}, "model", {"tokenizer_revision": "v1"}),
    (["--trust-remote-code"], {"trust_remote_code": True}, "model", {"trust_remote_code": True}),
    (["--generation-config", "vllm"], {"generation_config": "vllm"}, "model", {"generation_config": "vllm"}),
    (["--max-model-len", "2048"], {"max_model_len": 2048}, "model", {"max_model_len": 2048}),
    (["--max-model-len", "8k"], {"max_model_len": "8k"}, "model", {"max_model_len": 8000}),
    (["--max-model-len", "1M"], {"max_model_len": "1M"}, "model", {"max_model_len": 1048576}),
    (["--max-model-len", "1.5k"], {"max_model_len": 1500}, "model", {"max_model_len": 1500}),
    (["--max-model-len", "auto"], {"max_model_len": -1}, "model", {"max_model_len": None}),
    (["--max-model-len", "-1"], {"max_model_len": None}, "model", {"max_model_len": None}),
    (["--max-logprobs", "-1"], {"max_logprobs": -1}, "model", {"max_logprobs": -1}),
    (["--chat-template", "{{ a }}"], {"chat_template": "{{ a }}"}, "model", {"chat_template": "{{ a }}"}),
    (["--chat-template", ""], {"chat_template": None}, "model", {}),
    (
        ["--chat-template-content-format", "openai"],
        {"chat_template_content_format": "openai"},
        "model",
        {"chat_template_content_format": "openai"},
    ),
    (
        ["--default-chat-template-kwargs", '{"enable_thinking": false}'],
        {"default_chat_template_kwargs": {"enable_thinking": False}},
        "model",
        {"default_chat_template_kwargs": {"enable_thinking": False}},
    ),
    (["--default-chat-template-kwargs", "{}"], {"default_chat_template_kwargs": {}}, "model", {}),
    (
        ["--trust-request-chat-template"],
        {"trust_request_chat_template": True},
        "model",
        {"trust_request_chat_template": True},
    ),
    (["--response-role", "model"], {"response_role": "model"}, "model", {"response_role": "model"}),
    (["--enable-lora"], {"enable_lora": True}, "lora", {"enable_lora": True}),
    (
        ["--enable-lora", "--lora-modules", "a=/x"],
        {"enable_lora": True, "lora_modules": [{"name": "a", "path": "/x", "is_3d_lora_weight": False}]},
        "lora",
        {"enable_lora": True, "lora_modules": (LoraModule(name="a", path="/x"),)},
    ),
    (
        ["--return-tokens-as-token-ids"],
        {"return_tokens_as_token_ids": True},
        "model",
        {"return_tokens_as_token_ids": True},
    ),
    (
        ["--no-return-tokens-as-token-ids"],
        {"return_tokens_as_token_ids": False},
        "model",
        {"return_tokens_as_token_ids": False},
    ),
    (
        ["--engine-ready-timeout-secs", "30"],
        {"engine_ready_timeout_secs": 30},
        "handshake",
        {"engine_ready_timeout_s": 30},
    ),
    (
        ["--allow-engine-version", "0.34.0", "--allow-engine-version", "0.35.0"],
        {"allow_engine_version": ["0.34.0", "0.35.0"]},
        "handshake",
        {"allow_engine_version": ("0.34.0", "0.35.0")},
    ),
]


@pytest.mark.parametrize(("words", "args", "part", "settled"), CASES, ids=lambda value: json.dumps(value, default=repr))
def test_argv_and_json_settle_the_same(
    words: list[str], args: dict[str, Any], part: str, settled: dict[str, Any]
) -> None:
    expected = {
        "http": HttpSettings(),
        "model": MODEL,
        "lora": LoraSettings(),
        "handshake": HandshakeSettings(),
    }
    expected[part] = type(expected[part])(
        **{**{f: getattr(expected[part], f) for f in expected[part].__struct_fields__}, **settled}
    )
    served = serve("m", *words)
    supervised = frontend({"model_tag": "m", **args})
    assert {part: getattr(served, part) for part in expected} == expected
    assert {part: getattr(supervised, part) for part in expected} == expected


def test_every_flag_that_both_know_is_a_case_above() -> None:
    assert {key for _, args, _, _ in CASES for key in args} == {flag.key for flag in SHARED}


@pytest.mark.parametrize(
    ("words", "default"),
    [
        ([], False),
        (["--return-tokens-as-token-ids"], True),
        (["--return_tokens_as_token_ids"], True),
        (["--return-tokens-as-token-ids=true"], True),
        (["--return-tokens-as-token-ids=True"], True),
        (["--return-tokens-as-token-ids=false"], False),
        (["--no-return-tokens-as-token-ids"], False),
        (["--no_return_tokens_as_token_ids"], False),
        (["--no-return-tokens-as-token-ids=false"], True),
        (["--return-tokens-as-token-ids", "--no-return-tokens-as-token-ids"], False),
        (["--no-return-tokens-as-token-ids", "--return-tokens-as-token-ids"], True),
    ],
)
def test_the_rule_s_flag_arrives_as_the_server_s_default(words: list[str], default: bool) -> None:
    options = ServerOptions(default_return_tokens_as_token_ids=default)
    assert server_options(serve("--engine", "mock", *words)) == options
    assert server_options(serve("m", *words)) == options


@pytest.mark.parametrize(
    ("args", "default"),
    [
        ({}, False),
        ({"return_tokens_as_token_ids": None}, False),
        ({"return_tokens_as_token_ids": False}, False),
        ({"return_tokens_as_token_ids": True}, True),
    ],
)
def test_the_rule_s_flag_arrives_from_json(args: dict[str, Any], default: bool) -> None:
    settings = frontend({"model_tag": "m", **args})
    assert server_options(settings) == ServerOptions(default_return_tokens_as_token_ids=default)


def test_the_last_time_a_flag_is_given_counts() -> None:
    settings = serve("m", "--port", "1", "--served-model-name", "a", "--port", "2", "--served-model-name", "b", "c")
    assert settings.http.port == 2
    assert settings.model.served_model_names == ("b", "c")


@pytest.mark.parametrize(
    ("words", "args", "problem"),
    [
        (["--port", "x"], {"port": "8000"}, "port: expected an integer from 0 to 65535, not "),
        (["--port", "65536"], {"port": 65536}, "port: expected an integer from 0 to 65535, not "),
        (["--port", "-1"], {"port": True}, "port: expected an integer from 0 to 65535, not "),
        (["--max-logprobs", "-2"], {"max_logprobs": -2}, "max-logprobs: expected an integer of at least -1, not "),
        (["--max-model-len", "0"], {"max_model_len": 0}, "max-model-len: expected a number of tokens "),
        (["--max-model-len", "1.5K"], {"max_model_len": 1.5}, "max-model-len: expected a number of tokens "),
        (["--max-model-len", "many"], {"max_model_len": "many"}, "max-model-len: expected a number of tokens "),
        (["--max-model-len", "-2"], {"max_model_len": [1]}, "max-model-len: expected a number of tokens "),
        (["--shutdown-timeout", "-1"], {"shutdown_timeout": 1.5}, "shutdown-timeout: expected an integer from 0 "),
        (["--log-level", "loud"], {"log_level": 10}, "log-level: expected one of DEBUG, INFO, "),
        (["--fingerprint-mode", "half"], {"fingerprint_mode": 1}, "fingerprint-mode: expected one of full, hash, "),
        (
            ["--stream-interval", "0"],
            {"stream_interval": 0},
            "stream-interval: expected an integer of at least 1, not ",
        ),
        (
            ["--allowed-origins", "*"],
            {"allowed_origins": "*"},
            "allowed-origins: expected a JSON list of strings, not ",
        ),
        (
            ["--allowed-methods", "[1]"],
            {"allowed_methods": [1]},
            "allowed-methods: expected a JSON list of strings, not ",
        ),
        (
            ["--override-generation-config", "[]"],
            {"override_generation_config": "{}"},
            "override-generation-config: expected a JSON object, not ",
        ),
        (
            ["--return-tokens-as-token-ids=1"],
            {"return_tokens_as_token_ids": 1},
            "return-tokens-as-token-ids: expected true or false, not ",
        ),
    ],
)
def test_a_bad_value_is_said_with_its_flag(
    refused: Refusals, words: list[str], args: dict[str, Any], problem: str
) -> None:
    assert refused.serve("m", *words).startswith(f"--{problem}")
    name, colon, rest = problem.partition(":")
    said = refused.frontend({"model_tag": "m", **args})
    assert said.startswith(f"--args-json: {name.replace('-', '_')}{colon}{rest}")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"served_model_name": [1]}, "--args-json: served_model_name: expected a string, not 1"),
        ({"model_tag": 5}, "--args-json: model_tag: expected a string, not 5"),
        ({"tokenizer": {}}, "--args-json: tokenizer: expected a string, not {}"),
    ],
)
def test_a_wrong_type_in_json_is_said_with_its_key(refused: Refusals, args: dict[str, Any], problem: str) -> None:
    assert refused.frontend({"model_tag": "m", **args}) == problem


def test_a_flag_without_its_value_is_said(refused: Refusals) -> None:
    assert refused.serve("m", "--port") == "--port: expected one argument"


@pytest.mark.parametrize("key", ["", " "])
def test_a_key_that_came_out_empty_guards_nothing_and_is_refused(refused: Refusals, key: str) -> None:
    assert refused.serve("m", "--api-key", key) == "--api-key: expected a key that is not empty"
    assert refused.serve("m", "--api-key", "s", key) == "--api-key: expected a key that is not empty"
    said = refused.frontend({"model_tag": "m", "api_key": [key]})
    assert said == "--args-json: api_key: expected a key that is not empty"
    assert refused.frontend({"model_tag": "m", "api_key": [None]}) == said
    assert serve("m", environ={"VLLM_API_KEY": ""}).http.api_key == ()
    assert refused.serve("m", environ={"VLLM_API_KEY": " "}) == "VLLM_API_KEY: expected a key that is not empty"


def test_no_secret_is_shown(refused: Refusals) -> None:
    assert "s3cret" not in refused.serve("m", "--api-ke=s3cret")
    assert "53" not in refused.frontend({"model_tag": "m", "api_key": [53]})
    assert "s3cret" not in refused.frontend({"model_tag": "m", "api_key": [["s3cret"]]})


def test_the_key_of_the_environment_is_one_and_stands_behind_those_of_the_command() -> None:
    environ = {"VLLM_API_KEY": "a,b c"}
    assert serve("m", environ=environ).http.api_key == ("a,b c",)
    assert serve("m", "--api-key", "d", environ=environ).http.api_key == ("d",)
    assert frontend({"model_tag": "m"}, environ=environ).http.api_key == ("a,b c",)
    assert frontend({"model_tag": "m", "api_key": ["d"]}, environ=environ).http.api_key == ("d",)
