"""What is wrong with files, names and addresses: one line that names the flag, and status 1, before anything starts."""

import logging
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from adapters.bootstrap.__main__ import main
from adapters.bootstrap.stopping import STOPPING
from tests.fakes.tokenizers import write_model_folder

MOCK = ["serve", "--engine", "mock", "--port", "0"]
HANDED_OVER = ["--engine-start-index", "0", "--engine-count", "1", "--data-parallel-size", "1"]


@pytest.fixture(autouse=True)
def _undisturbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command changes what is the process's."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    before = {number: signal.getsignal(number) for number in STOPPING}
    uvicorn = logging.getLogger("uvicorn")
    level = uvicorn.level
    yield
    uvicorn.setLevel(level)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def complaint(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Of a command that does not start."""

    def of(*argv: object) -> str:
        assert main([str(word) for word in argv]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("northbound: error: ")
        assert err.count("\n") == 1
        assert len(err) < 600
        return err.removeprefix("northbound: error: ").rstrip("\n")

    return of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With files that are not what they should be."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "broken.jinja").write_text("{% for x %}")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--host", "no.such.host.invalid"], "--host, --port: cannot listen on no.such.host.invalid:0: "),
        (["--host", "999.1.1.1"], "--host, --port: cannot listen on 999.1.1.1:0: "),
        (["--host", "é" * 100], "--host, --port: cannot listen on éé"),
        (["--uds", "{folder}/no/socket"], "--uds: cannot listen on {folder}/no/socket: No such file or directory"),
        (["--uds", "{folder}/folder"], "--uds: cannot listen on {folder}/folder: Address already in use"),
        (["--uds", "a" * 5000], "--uds: cannot listen on aaa"),
    ],
)
def test_nowhere_to_listen(complaint: Callable[..., str], folder: Path, words: list[str], reason: str) -> None:
    words = [word.format(folder=folder) for word in words]
    assert complaint(*MOCK, *words).startswith(reason.format(folder=folder))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--chat-template", "{folder}/folder"], "--chat-template: {folder}/folder cannot be read: Is a directory"),
        (["--chat-template", "{folder}/bytes"], "--chat-template: {folder}/bytes is not UTF-8"),
        (["--chat-template", "none.jinja"], "--chat-template: none.jinja cannot be read: No such file or directory"),
        (["--chat-template", "/proc/self/mem"], "--chat-template: /proc/self/mem cannot be read: Input/output error"),
        (["--chat-template", "a" * 5000], "--chat-template: aaa"),
        (["--chat-template", "{folder}/broken.jinja"], "--chat-template: not valid: "),
        (["--chat-template", "{{% if %}}"], "--chat-template: not valid: "),
        (["--generation-config", "{folder}/folder"], "--generation-config: {folder}/folder has no generation_config"),
        (["--generation-config", "{folder}/bytes"], "--generation-config: {folder}/bytes is a file."),
        (["--generation-config", "./none"], "--generation-config: There is no folder ./none."),
        (["--override-generation-config.temperature", "hot"], "--override-generation-config is not usable: "),
        (["--override-generation-config.temperature", "-1"], "--override-generation-config is not usable: "),
        (["--override-generation-config.max_new_tokens", "0"], "--override-generation-config is not usable: "),
        (["--override-generation-config.eos_token_id", "9" * 25], "--override-generation-config is not usable: "),
        (["--tokenizer", "{folder}/folder"], "--tokenizer: {folder}/folder has no fast tokenizer"),
        (["--tokenizer", "{folder}/bytes"], "--tokenizer: {folder}/bytes is a file."),
        (["--tokenizer", "./none"], "--tokenizer: There is no folder ./none."),
        (["--revision", "none"], ""),
    ],
)
def test_what_is_to_be_read(complaint: Callable[..., str], folder: Path, words: list[str], reason: str) -> None:
    model = write_model_folder(folder / "model")
    words = [word.format(folder=folder) for word in words]
    if reason:
        assert complaint("serve", model, "--engine", "mock", "--port", "0", *words).startswith(
            reason.format(folder=folder)
        )
    else:
        assert "has no vLLM" in complaint("serve", model, "--port", "0", *words)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *[(name, b"{") for name in ("config.json", "generation_config.json", "tokenizer.json")],
        *[(name, b"\xff\xfe") for name in ("config.json", "tokenizer.json", "tokenizer_config.json")],
        ("config.json", b"[]"),
        ("config.json", b"[" * 100_000),
        ("generation_config.json", b"[" * 100_000),
        ("generation_config.json", b'{"temperature": "hot"}'),
        ("generation_config.json", b'{"temperature": -1}'),
        ("generation_config.json", b'{"eos_token_id": ["a"]}'),
        ("generation_config.json", b'{"eos_token_id": [1000000000000000000000]}'),
        ("tokenizer.json", b""),
    ],
)
def test_a_file_of_the_model_that_is_broken(
    complaint: Callable[..., str], tmp_path: Path, file: str, content: bytes
) -> None:
    model = write_model_folder(tmp_path)
    (model / file).write_bytes(content)
    assert str(model) in complaint("serve", model, "--engine", "mock", "--port", "0")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--data-parallel-address", "no.such.host.invalid"], "--data-parallel-address: cannot listen for engines "),
        (["--data-parallel-address", "é" * 100], "--data-parallel-address: cannot listen for engines "),
        (["--data-parallel-address", "a b"], "--data-parallel-address: cannot listen for engines "),
        (["--data-parallel-address", "203.0.113.1"], "--data-parallel-address, --data-parallel-rpc-port: cannot "),
        (["--engine-ready-timeout-secs", "0"], "Within 0 s, "),
    ],
)
def test_no_engines_from_elsewhere(
    complaint: Callable[..., str], tmp_path: Path, words: list[str], reason: str
) -> None:
    model = write_model_folder(tmp_path)
    assert complaint("serve", model, "--port", "0", "--data-parallel-size-local", "0", *words).startswith(reason)


@pytest.mark.parametrize("python", ["no-such-python", "{folder}/folder", "{folder}/bytes", "/bin/false"])
def test_no_interpreter(complaint: Callable[..., str], folder: Path, python: str) -> None:
    model = write_model_folder(folder / "model")
    python = python.format(folder=folder)
    said = complaint("serve", model, "--port", "0", "--python", python)
    assert "--python" in said
    assert python in said


def test_descriptors_that_are_no_listeners(complaint: Callable[..., str], tmp_path: Path) -> None:
    model = write_model_folder(tmp_path)
    args = ["--args-json", f'{{"model_tag": "{model}"}}']
    with socket.create_server(("", 0)) as http, socket.create_server(("", 0)) as inputs, socket.socket() as idle:
        datagrams = socket.socket(type=socket.SOCK_DGRAM).detach()
        with (tmp_path / "config.json").open() as file:
            for descriptor in (file.fileno(), datagrams):
                words = ["--listen-fd", descriptor, "--input-listener-fd", 998, "--output-listener-fd", 999]
                said = complaint("frontend", *words, *HANDED_OVER, *args)
                assert said.startswith(f"--listen-fd: descriptor {descriptor} is no socket to listen on")
            words = ["--listen-fd", http.detach(), "--input-listener-fd", 998, "--output-listener-fd", idle.fileno()]
            said = complaint("frontend", *words, *HANDED_OVER, *args)
            assert said.startswith("--input-listener-fd: descriptor 998 is no socket: ")
            inputs.detach()


@pytest.mark.parametrize(
    "address", ["x", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", "tcp://127.0.0.1:x", "http://127.0.0.1:1"]
)
def test_no_address_for_a_mock_engine(complaint: Callable[..., str], address: str) -> None:
    said = complaint("mock-engine", "--handshake-address", address)
    assert said == f"--handshake-address: {address!r} is no address such as tcp://127.0.0.1:29550."


def test_an_address_that_a_mock_engine_cannot_connect_to(complaint: Callable[..., str]) -> None:
    said = complaint("mock-engine", "--handshake-address", f"ipc://{'a' * 200}")
    assert said.endswith(": File name too long.")


def test_a_failure_that_a_mock_engine_does_not_know(complaint: Callable[..., str]) -> None:
    said = complaint("mock-engine", "--handshake-address", "tcp://127.0.0.1:1", "--fail", "x")
    assert said.startswith("--fail: 'x' is none of the failures ")
