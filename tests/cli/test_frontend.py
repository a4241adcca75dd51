"""What `vllm serve` hands over."""

import json

import pytest

from adapters.inbound.cli.parse import parse
from adapters.inbound.cli.settings import FrontendSettings, HandshakeSettings, HttpSettings, ModelSettings
from tests.cli.commands import DESCRIPTORS, Refusals, frontend


def test_the_command_line_of_vllm_serve() -> None:
    """Words as vLLM 0.32 gives them, with engine flags among the arguments."""
    args = {
        "dtype": "bfloat16",
        "enforce_eager": True,
        "engine_ready_timeout_secs": 600,
        "hf_overrides": {"a": {"b": 3}},
        "host": "127.0.0.1",
        "http_timeout_keep_alive": 5,
        "max_model_len": 2048,
        "model": "/models/smol",
        "model_tag": "/models/smol",
        "port": 8123,
        "return_tokens_as_token_ids": True,
        "served_model_name": ["smol", None],
        "tensor_parallel_size": 2,
    }
    argv = ["frontend", "--listen-fd", "16", "--input-listener-fd", "17", "--output-listener-fd", "18"]
    argv += [
        "--engine-start-index",
        "2",
        "--engine-count",
        "2",
        "--data-parallel-size",
        "4",
        "--args-json",
        json.dumps(args, sort_keys=True),
    ]
    assert parse(argv, {}) == FrontendSettings(
        http=HttpSettings(host="127.0.0.1", port=8123),
        model=ModelSettings(
            model="/models/smol",
            served_model_names=("smol",),
            max_model_len=2048,
            return_tokens_as_token_ids=True,
        ),
        handshake=HandshakeSettings(engine_ready_timeout_s=600),
        listen_fd=16,
        input_listener_fd=17,
        output_listener_fd=18,
        engine_start_index=2,
        engine_count=2,
        data_parallel_size=4,
    )


def test_the_model_is_what_the_launcher_resolved() -> None:
    assert frontend({"model": "default", "model_tag": "m"}).model.model == "m"
    assert frontend({"model": "m"}).model.model == "m"


def test_keys_that_are_the_engine_s_are_dropped() -> None:
    assert frontend({"model_tag": "m", "dtype": "half", "anything": [1]}) == frontend({"model_tag": "m"})


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{}", "--args-json: model_tag is missing"),
        ("{", "--args-json: not valid JSON: "),
        ("[]", "--args-json: expected a JSON object"),
        ('{"model_tag": "m", "mock_step_ms": 1}', "--args-json: mock_step_ms is a flag of `northbound serve` alone"),
        ('{"model_tag": "m", "engine": "mock"}', "--args-json: engine is a flag of `northbound serve` alone"),
    ],
)
def test_documents_that_cannot_be_followed(refused: Refusals, document: str, problem: str) -> None:
    assert refused.frontend(document).startswith(problem)


def test_what_the_launcher_must_hand_over(refused: Refusals) -> None:
    said = refused.parse(["frontend", *DESCRIPTORS])
    assert "--args-json" in said
    said = refused.parse(["frontend", "--args-json", '{"model_tag": "m"}'])
    for flag in DESCRIPTORS[::2]:
        assert flag in said


def test_words_that_are_not_the_launcher_s(refused: Refusals) -> None:
    assert refused.frontend({"model_tag": "m"}, "--port", "1") == "unexpected argument '--port'"
    assert refused.frontend({"model_tag": "m"}, "--listen-fd", "x").startswith("--listen-fd: expected an integer")
