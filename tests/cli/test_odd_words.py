"""Words that no reading of them survives: one short line each, naming the flag or the variable."""

import pytest

from tests.cli.commands import DESCRIPTORS, Refusals

DEEP = "[" * 100_000
LONG = "9" * 5_000
NOT_UTF8 = "\udcff"
"""As Python gives a byte of the command line that is no UTF-8."""
GENERATION, KWARGS = "--override-generation-config", "--default-chat-template-kwargs"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--sse-keep-alive-interval", "9" * 400], "--sse-keep-alive-interval: expected an integer from 0 to "),
        (["--shutdown-timeout", "9" * 40], "--shutdown-timeout: expected an integer from 0 to "),
        (["--http-timeout-keep-alive", "9" * 40], "--http-timeout-keep-alive: expected an integer from 0 to "),
        (["--engine-ready-timeout-secs", "9" * 400], "--engine-ready-timeout-secs: expected an integer from 0 to "),
        (["--mock-step-ms", "1e308"], "--mock-step-ms: expected a number from 0 to "),
        (["--max-model-len", "9" * 30], "--max-model-len: expected a number of tokens "),
        (
            ["--data-parallel-size", "65537"],
            "--data-parallel-size/-dp: expected an integer from 1 to 65536, not '65537'",
        ),
        (["--port", LONG], "--port: expected an integer from 0 to 65535, not '999"),
        (["--max-logprobs", LONG], "--max-logprobs: expected an integer of at least -1, not '999"),
        (["--allowed-origins", DEEP], "--allowed-origins: expected a JSON list of strings, not '[["),
        (["--allowed-origins", '["\\ud800"]'], "--allowed-origins: expected a JSON list of strings, not "),
        ([GENERATION, DEEP], f"{GENERATION}: expected a JSON object, not '[["),
        ([GENERATION, '{"temperature": NaN}'], f"{GENERATION}: expected a JSON object, not "),
        ([GENERATION, '{"temperature": 1e400}'], f"{GENERATION}: expected a JSON object, not "),
        ([KWARGS, '{"messages": []}'], f"{KWARGS}: messages come with each request"),
        (["--allow-engine-version", ""], "--allow-engine-version: expected a value that is not empty, not ''"),
        (["--config", ""], "--config: cannot read : "),
        (["--served-model-name", NOT_UTF8], "word 4 is not UTF-8, the one after --served-model-name"),
        (["--api-key", f"secret{NOT_UTF8}"], "word 4 is not UTF-8, the one after --api-key"),
        ([f"--x{NOT_UTF8}"], "word 3 is not UTF-8, the one after m"),
    ],
)
def test_of_serve(refused: Refusals, words: list[str], complaint: str) -> None:
    assert refused.serve("m", *words).startswith(complaint)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--listen-fd", "9" * 30], "--listen-fd: expected an integer from 0 to 2147483647, not "),
        (["--listen-fd", "4"], "--input-listener-fd: 4 is --listen-fd"),
        (["--output-listener-fd", "4"], "--output-listener-fd: 4 is --input-listener-fd"),
        (["--engine-start-index", "65536"], "--engine-start-index: expected an integer from 0 to 65535, not '65536'"),
        (["--engine-start-index", "65535", "--engine-count", "2"], "--engine-start-index: the last of --engine-count "),
        (["--engine-count", "100000"], "--engine-count: expected an integer from 1 to 65536, not '100000'"),
        (["--data-parallel-size", "9" * 50], "--data-parallel-size: expected an integer from 1 to 65536, not "),
        (["--args-json", ""], "--args-json: expected a value that is not empty, not ''"),
        (["--args-json", NOT_UTF8], "word 17 is not UTF-8, the one after --args-json"),
    ],
)
def test_of_what_a_launcher_hands_over(refused: Refusals, words: list[str], complaint: str) -> None:
    argv = ["frontend", *DESCRIPTORS, "--args-json", '{"model_tag": "m"}']
    assert refused.parse([*argv, *words]).startswith(complaint)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--handshake-address", ""], "--handshake-address: expected a value that is not empty, not ''"),
        (["--engine-count", "257"], "--engine-count: expected an integer from 1 to 256, not '257'"),
        (["--vocab-size", "9" * 30], "--vocab-size: expected an integer from 1 to 10000000, not "),
        (["--max-model-len", "9" * 30], "--max-model-len: expected a number of tokens "),
        (["--ready-delay-s", "1e308"], "--ready-delay-s: expected a number from 0 to "),
        (["--step-ms", "inf"], "--step-ms: expected a number from 0 to "),
    ],
)
def test_of_the_mock_engine(refused: Refusals, words: list[str], complaint: str) -> None:
    assert refused.parse(["mock-engine", "--handshake-address", "tcp://a:1", *words]).startswith(complaint)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("VLLM_HTTP_MAX_REQUEST_BODY_SIZE", "abc", "expected an integer of at least 0, not 'abc'"),
        ("VLLM_HTTP_MAX_REQUEST_BODY_SIZE", "-5", "expected an integer of at least 0, not '-5'"),
        ("VLLM_HTTP_MAX_REQUEST_BODY_SIZE", LONG, "expected an integer of at least 0, not '999"),
        ("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "1.5", "expected an integer from 0 to 1000000000, not '1.5'"),
        ("VLLM_ENGINE_READY_TIMEOUT_S", "soon", "expected an integer from 0 to 1000000000, not 'soon'"),
        ("VLLM_LOGGING_LEVEL", "loud", "expected one of DEBUG, INFO, "),
        ("VLLM_API_KEY", f"secret{NOT_UTF8}", "not UTF-8"),
        ("VLLM_API_KEY", " ", "expected a key that is not empty"),
        ("NORTHBOUND_ALLOW_ENGINE_VERSION", NOT_UTF8, "not UTF-8"),
        ("NORTHBOUND_ALLOW_ENGINE_VERSION", "0.34.0,", "expected a value that is not empty, not ''"),
    ],
)
def test_of_the_environment(refused: Refusals, name: str, value: str, complaint: str) -> None:
    assert refused.serve("m", environ={name: value}).startswith(f"{name}: {complaint}")
    assert refused.frontend({"model_tag": "m"}, environ={name: value}).startswith(f"{name}: {complaint}")


def test_no_complaint_is_long(refused: Refusals) -> None:
    said = refused.serve("m", "--port", LONG)
    assert len(said) == 501
    assert said.endswith("9…")


def test_what_is_no_utf8_in_first_place(refused: Refusals) -> None:
    assert refused.parse([NOT_UTF8]) == "word 1 is not UTF-8"
