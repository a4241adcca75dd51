"""What the command line says of itself."""

import re
from importlib.metadata import version

import pytest

from adapters.inbound.cli.command_flags import FRONTEND, MOCK_ENGINE, RENDER, SERVE
from adapters.inbound.cli.flags import SHARED, Flag
from adapters.inbound.cli.parse import parse
from tests.cli.commands import Refusals


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as exit_:
        parse(argv, {"VLLM_API_KEY": "even then"})
    out, err = capsys.readouterr()
    assert exit_.value.code == 0
    assert err == ""
    return out


@pytest.mark.parametrize("flag", ["--version", "-v"])
def test_version(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    assert shown(capsys, flag) == f"northbound {version('northbound')}\n"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    text = shown(capsys, flag)
    for command in ("serve [MODEL]", "render MODEL", "frontend", "mock-engine", "--version"):
        assert f"\n  {command} " in text or f", {command} " in text


@pytest.mark.parametrize(
    ("command", "flags"),
    [("serve", (*SHARED, *SERVE)), ("render", RENDER), ("frontend", FRONTEND), ("mock-engine", MOCK_ENGINE)],
)
def test_help_of_a_command_lists_each_of_its_flags(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, flags: tuple[Flag, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    entries = [" ".join(entry.split()) for entry in shown(capsys, command, "--help").split("\n  -")]
    for flag in flags:
        (entry,) = [entry for entry in entries if re.match(rf"-{flag.name}[ ,]", entry)]
        assert all(spelling.removeprefix("-") in entry for spelling in flag.spellings)
        assert f"* {flag.help}" in entry if flag.ours else f" {flag.help}" in entry and "*" not in entry
        assert flag.env in entry


def test_help_of_serve_is_grouped_and_shows_defaults(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    text = shown(capsys, "serve", "m", "--help")
    starts = [text.index(f"\n{group} (") for group in ("serving", "access", "answers", "model", "engine", "mock")]
    assert starts == sorted(starts)
    assert "port to listen on; 0 picks a free one (default: 8000)" in text
    assert "even then" not in text
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ([], "no command: expected serve, render, frontend or mock-engine; see `northbound --help`"),
        (["run"], "no command 'run': expected serve, render, frontend or mock-engine; see `northbound --help`"),
        (
            ["--port", "1"],
            "no command '--port': expected serve, render, frontend or mock-engine; see `northbound --help`",
        ),
    ],
)
def test_no_command(refused: Refusals, argv: list[str], problem: str) -> None:
    assert refused.parse(argv) == problem
