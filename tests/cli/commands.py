"""The commands as a shell would give them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from adapters.inbound.cli.parse import parse
from adapters.inbound.cli.settings import FrontendSettings, MockEngineSettings, ServeSettings

DESCRIPTORS = ["--listen-fd", "3", "--input-listener-fd", "4", "--output-listener-fd", "5"]
DESCRIPTORS += ["--engine-start-index", "0", "--engine-count", "1", "--data-parallel-size", "1"]


def serve(*words: str, environ: Mapping[str, str] | None = None) -> ServeSettings:
    settings = parse(["serve", *words], environ or {})
    assert isinstance(settings, ServeSettings)
    return settings


def frontend(args: Mapping[str, Any] | str, *words: str, environ: Mapping[str, str] | None = None) -> FrontendSettings:
    document = args if isinstance(args, str) else json.dumps(args)
    settings = parse(["frontend", *DESCRIPTORS, *words, "--args-json", document], environ or {})
    assert isinstance(settings, FrontendSettings)
    return settings


def mock_engine(*words: str) -> MockEngineSettings:
    settings = parse(["mock-engine", *words], {})
    assert isinstance(settings, MockEngineSettings)
    return settings


class Refusals:
    """What a command that cannot be followed says."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def serve(self, *words: str, environ: Mapping[str, str] | None = None) -> str:
        return self.parse(["serve", *words], environ)

    def frontend(self, args: Mapping[str, Any] | str, *words: str, environ: Mapping[str, str] | None = None) -> str:
        document = args if isinstance(args, str) else json.dumps(args)
        return self.parse(["frontend", *DESCRIPTORS, *words, "--args-json", document], environ)

    def parse(self, argv: list[str], environ: Mapping[str, str] | None = None) -> str:
        """The one line of complaint, less what every one begins with."""
        with pytest.raises(SystemExit) as exit_:
            parse(argv, environ or {})
        out, err = self._capsys.readouterr()
        assert exit_.value.code == 2
        assert out == ""
        assert err.endswith("\n")
        assert err.count("\n") == 1
        assert err.startswith("northbound: error: ")
        return err.removeprefix("northbound: error: ").rstrip("\n")
