"""The command line: the one entry."""

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from adapters.inbound.cli.command_flags import MOCK_ENGINE
from adapters.inbound.cli.commands import OVERVIEW, mock_engine_parser
from adapters.inbound.cli.environment import is_utf8
from adapters.inbound.cli.frontend import read_frontend
from adapters.inbound.cli.render import read_render
from adapters.inbound.cli.serve import read_serve
from adapters.inbound.cli.settings import FrontendSettings, MockEngineSettings, RenderSettings, ServeSettings
from adapters.inbound.cli.shared import fill
from adapters.inbound.cli.usage import UsageError, complaint

Settings = ServeSettings | RenderSettings | FrontendSettings | MockEngineSettings


def parse(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """What the words after `northbound` ask for.

    Prints and raises SystemExit instead: 0 once help or the version is shown, 2 with one line on standard error if the
    words cannot be followed.
    """
    try:
        _check_encoding(argv)
        return _parse(argv, environ)
    except UsageError as error:
        sys.stderr.write(complaint(error))
        raise SystemExit(2) from None


def _check_encoding(argv: Sequence[str]) -> None:
    """What is not UTF-8 can be sent to no client and no engine."""
    for at, word in enumerate(argv):
        if not is_utf8(word):
            raise UsageError(f"word {at + 1} is not UTF-8" + (f", the one after {argv[at - 1]}" if at else ""))


def _parse(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    command, words = (argv[0] if argv else ""), argv[1:]
    match command:
        case "serve":
            return read_serve(words, environ)
        case "render":
            return read_render(words, environ)
        case "frontend":
            return read_frontend(words, environ)
        case "mock-engine":
            return _read_mock_engine(words)
        case "-h" | "--help" | "help":
            sys.stdout.write(OVERVIEW)
            raise SystemExit(0)
        case "-v" | "--version":
            sys.stdout.write(f"northbound {version('northbound')}\n")
            raise SystemExit(0)
        case _:
            problem = f"no command {command!r}" if command else "no command"
            raise UsageError(f"{problem}: expected serve, render, frontend or mock-engine; see `northbound --help`")


def _read_mock_engine(words: Sequence[str]) -> MockEngineSettings:
    parser = mock_engine_parser()
    given, rest = parser.read(words)
    if rest:
        raise UsageError(f"unexpected argument {rest[0]!r}{parser.perhaps(rest[0])}")
    return fill(MockEngineSettings, MOCK_ENGINE, given)
