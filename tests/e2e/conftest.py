"""Servers in these tests run as they do when they serve: on uvloop, or in processes of their own."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import uvloop

from tests.e2e.programs import Programs
from tests.fakes.tokenizers import write_model_folder

LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]


def pytest_asyncio_loop_factories(item: pytest.Item) -> LoopFactories:
    if item.path.name.startswith("test_http_"):
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder, less what only an engine reads."""
    return write_model_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def shared_programs(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """For processes that several tests of a module use."""
    programs = Programs(tmp_path_factory.mktemp("logs"), model)
    yield programs
    programs.kill()


@pytest.fixture
def programs(model: Path, tmp_path: Path) -> Iterator[Programs]:
    """For processes of one test."""
    programs = Programs(tmp_path, model)
    yield programs
    programs.kill()
