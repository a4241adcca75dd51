"""`--config FILE`: flags from YAML."""

from pathlib import Path

import pytest

from tests.cli.commands import Refusals, serve

FLAGS = """\
port: 8123
return_tokens_as_token_ids: true
trust-remote-code: false
served-model-name: [a, b]
override-generation-config: {top_k: 5, stop: {x: true}}
max-model-len: 8k
max-logprobs: -1
fingerprint-value: null
tensor-parallel-size: 2
enforce-eager: true
enable-prefix-caching: false
api-key: []
"""
WORDS = [
    *["--port", "8123", "--return-tokens-as-token-ids", "--no-trust-remote-code", "--served-model-name", "a", "b"],
    *["--override-generation-config", '{"top_k": 5, "stop": {"x": true}}', "--max-model-len", "8k"],
    *["--max-logprobs", "-1", "--tensor-parallel-size=2", "--enforce-eager", "--no-enable-prefix-caching"],
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "serve.yaml"
    path.write_text(FLAGS)
    return path


def test_its_flags_are_taken_as_if_typed(file: Path) -> None:
    assert serve("m", "--config", str(file)) == serve("m", *WORDS)
    assert serve("m", f"--config={file}") == serve("m", *WORDS)


def test_the_command_line_wins(file: Path) -> None:
    settings = serve("m", "--port", "9", "--config", str(file), "--served-model-name", "c")
    assert settings.http.port == 9
    assert settings.model.served_model_names == ("c",)
    settings = serve("m", "--config", str(file), "--override-generation-config.a=1")
    assert settings.model.override_generation_config == {"a": 1}


def test_the_model_may_be_in_it(file: Path) -> None:
    file.write_text("model: m\nport: 1\n")
    assert serve("--config", str(file)) == serve("m", "--port", "1")
    assert serve("n", "--config", str(file)) == serve("n", "--port", "1")
    assert serve("--model", "n", "--config", str(file)) == serve("n", "--port", "1")


def test_what_is_not_built_is_refused_from_it_too(refused: Refusals, file: Path) -> None:
    file.write_text("headless: true\n")
    assert refused.serve("m", "--config", str(file)).startswith("--headless is not supported by Northbound yet")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "is not YAML: "),
        ("[" * 5000, "is not YAML: "),
        ("a: !!python/object:os.system {}", "is not YAML: "),
        ("- a\n", "expected flags and their values in "),
        ("", "expected flags and their values in "),
        ("1: 2\n", "expected flags and their values in "),
        ("a: &a [*a]", "a has a value that JSON cannot hold"),
        ("a: {~: 1}", "a has a value that JSON cannot hold"),
    ],
)
def test_a_file_that_says_nothing(refused: Refusals, file: Path, text: str, problem: str) -> None:
    file.write_text(text)
    said = refused.serve("m", "--config", str(file))
    assert said.startswith("--config: ")
    assert problem in said


def test_no_file(refused: Refusals, file: Path) -> None:
    assert refused.serve("m", "--config") == "--config: expected one argument"
    assert refused.serve("m", "--config", "nowhere.yaml") == (
        "--config: cannot read nowhere.yaml: No such file or directory"
    )
    assert refused.serve("m", "--config", str(file.parent)) == f"--config: cannot read {file.parent}: Is a directory"
    file.write_bytes(b"a: \xff\n")
    assert refused.serve("m", "--config", str(file)).startswith(f"--config: {file} is not YAML: ")


def test_one_file_and_not_for_the_engine(refused: Refusals, file: Path) -> None:
    config = f"--config={file}"
    assert refused.serve("m", config, config) == "--config: there is one already"
    assert refused.serve("m", "--", config) == "--config is not for the engine: give it before --"
