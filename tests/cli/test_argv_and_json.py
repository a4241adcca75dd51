"""Flags on the command line and keys of --args-json settle the same."""

import json
from typing import Any

import pytest

from adapters.inbound.cli.flags import SHARED
from adapters.inbound.cli.settings import (
    HandshakeSettings,
    HttpSettings,
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


@pytest.mark.parametrize(("words", "args", "part", "settled"), CASES, ids=lambda value: json.dumps(value))
def test_argv_and_json_settle_the_same(
    words: list[str], args: dict[str, Any], part: str, settled: dict[str, Any]
) -> None:
    expected = {
        "http": HttpSettings(),
        "model": MODEL,
        "handshake": HandshakeSettings(),
    }
    expected[part] = type(expected[part])(
        **{**{f: getattr(expected[part], f) for f in expected[part].__struct_fields__}, **settled}
    )
    served = serve("m", *words)
    supervised = frontend({"model_tag": "m", **args})
    assert {"http": served.http, "model": served.model, "handshake": served.handshake} == expected
    assert {"http": supervised.http, "model": supervised.model, "handshake": supervised.handshake} == expected


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
        (["--shutdown-timeout", "-1"], {"shutdown_timeout": 1.5}, "shutdown-timeout: expected an integer of at "),
        (["--log-level", "loud"], {"log_level": 10}, "log-level: expected one of DEBUG, INFO, "),
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
