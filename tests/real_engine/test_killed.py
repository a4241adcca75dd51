"""Northbound, with the engine that it started, is killed hard. The flag is on, so that requests say nothing."""

import signal
from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.real_engine.answers import Json
from tests.real_engine.checks import Serves
from tests.real_engine.processes import settled
from tests.real_engine.servers import Home, Server, managed, running


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Server]:
    with running(managed(home, "--return-tokens-as-token-ids")) as server:
        yield server


class TestKilled(Serves):
    to_show_texts: ClassVar[Json] = {"return_tokens_as_token_ids": False}

    def test_the_engine_does_not_outlive_it(self, server: Server) -> None:
        assert len(server.frontend.running()) > 1

        server.frontend.send(signal.SIGKILL)
        server.frontend.wait()

        assert settled(server.frontend.running, []) == []
