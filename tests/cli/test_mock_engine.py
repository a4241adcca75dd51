import pytest

from adapters.inbound.cli.settings import MockEngineSettings
from tests.cli.commands import Refusals, mock_engine

ADDRESS = ("--handshake-address", "tcp://127.0.0.1:5555")


def test_defaults() -> None:
    assert mock_engine(*ADDRESS) == MockEngineSettings(
        handshake_address="tcp://127.0.0.1:5555",
        step_ms=10,
        tokens_per_step=1,
        engine_count=1,
        vocab_size=49152,
        max_model_len=8192,
    )


def test_every_flag() -> None:
    words = "--step-ms 0.5 --tokens-per-step 3 --engine-count 2 --vocab-size 300 --max-model-len 4k --fail die"
    words += " --fail-after 5 --ready-delay-s 1.5 --vllm-version 0.33.0"
    assert mock_engine(*ADDRESS, *words.split()) == MockEngineSettings(
        handshake_address="tcp://127.0.0.1:5555",
        step_ms=0.5,
        tokens_per_step=3,
        engine_count=2,
        vocab_size=300,
        max_model_len=4000,
        fail="die",
        fail_after=5,
        ready_delay_s=1.5,
        vllm_version="0.33.0",
    )


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "the following arguments are required: --handshake-address"),
        ([*ADDRESS, "--tokens-per-step", "0"], "--tokens-per-step: expected an integer of at least 1, not '0'"),
        ([*ADDRESS, "--max-model-len", "auto"], "--max-model-len: expected a number of tokens such as "),
        ([*ADDRESS, "--port", "1"], "unexpected argument '--port'"),
        ([*ADDRESS, "--setp-ms=1"], "unexpected argument '--setp-ms=1'; did you mean --step-ms?"),
        ([*ADDRESS, "m"], "unexpected argument 'm'"),
    ],
)
def test_what_cannot_be_followed(refused: Refusals, words: list[str], problem: str) -> None:
    assert refused.parse(["mock-engine", *words]).startswith(problem)
