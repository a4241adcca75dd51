"""Runs only where a real engine was made: these checks are never collected unless they are asked for by path."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.real_engine.answers import Asker
from tests.real_engine.comparison import COMPARISON, summary
from tests.real_engine.lm_eval_runs import SCORED, table
from tests.real_engine.openai_calls import Calls, call_asynchronously
from tests.real_engine.recording import Records, record_all
from tests.real_engine.servers import API_KEY, Home, Server, fastapi, running
from tests.real_engine.vocabulary import Vocabulary


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("real engine")
    group.addoption("--real-engine", metavar="FOLDER", type=Path, help="what script/e2e-vllm made")
    group.addoption(
        "--northbound",
        metavar="PROGRAM",
        type=Path,
        default=Path(sys.executable).with_name("northbound"),
        help="the program to check (default: the one of this environment)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--real-engine") is None:
        raise pytest.UsageError("tests/real_engine needs a real engine: run script/e2e-vllm")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if (comparison := config.stash.get(COMPARISON, None)) is not None:
        terminalreporter.section("comparison with vLLM's Python frontend")
        for line in summary(comparison):
            terminalreporter.write_line(line)
    if (scored := config.stash.get(SCORED, None)) is not None:
        terminalreporter.section("scores of lm-eval: Northbound's, vLLM's")
        for line in table(*scored):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = request.config.getoption("--real-engine")
    return Home(
        python=folder / "venv/bin/python",
        vllm=folder / "venv/bin/vllm",
        model=folder / "smollm2",
        adapter=folder / "adapter",
        northbound=request.config.getoption("--northbound"),
        lm_eval=folder / "lm-eval/bin/python",
        logs=tmp_path_factory.mktemp("logs"),
    )


@pytest.fixture(scope="session")
def vocabulary(home: Home) -> Vocabulary:
    return Vocabulary(home.model)


@pytest.fixture(scope="session")
def reference(home: Home) -> Records:
    """What vLLM's own Python frontend answers, with an engine that nobody else asks."""
    with running(fastapi(home, "--api-key", API_KEY)) as server:
        return record_all(home, server.url)


@pytest.fixture(scope="module")
def asker(server: Server) -> Iterator[Asker]:
    asker = Asker(server.url)
    yield asker
    asker.close()


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def called_asynchronously(server: Server) -> Calls:
    return asyncio.run(call_asynchronously(server.url))
