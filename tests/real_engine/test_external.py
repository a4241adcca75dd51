"""Northbound waits for an engine that is started elsewhere. The flag is on, so that requests say nothing."""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.real_engine.answers import Json
from tests.real_engine.checks import Serves, stops
from tests.real_engine.parts_checks import ServesInParts
from tests.real_engine.servers import Home, Server, external, running


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Server]:
    with running(external(home, "--return-tokens-as-token-ids", "--enable-scale-out")) as server:
        yield server


class TestExternal(Serves, ServesInParts):
    to_show_texts: ClassVar[Json] = {"return_tokens_as_token_ids": False}

    def test_stops_by_sigterm(self, server: Server) -> None:
        stops(server)

        assert server.engine
        assert server.engine.exit_status is None
