"""`vllm serve` starts the engine, and Northbound as its frontend. The flag is on, so that requests say nothing."""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.real_engine.answers import Json
from tests.real_engine.checks import Serves, stops
from tests.real_engine.servers import Home, Server, running, supervised


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Server]:
    with running(supervised(home, "--return-tokens-as-token-ids")) as server:
        yield server


class TestSupervised(Serves):
    to_show_texts: ClassVar[Json] = {"return_tokens_as_token_ids": False}

    def test_northbound_is_the_frontend(self, server: Server, home: Home) -> None:
        assert any(f"{home.northbound} frontend " in line for line in server.frontend.running())

    def test_stops_by_sigterm(self, server: Server) -> None:
        stops(server)
