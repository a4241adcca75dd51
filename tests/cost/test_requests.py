"""What a request with a short answer costs from its bytes to the answer's: counted, not timed.

A good part of it is done by uvicorn and Litestar, so another version of these may need other bounds.
"""

import pytest

from tests.cost.counting import Cost, traced
from tests.cost.server import Server, request
from tests.http.serving import CHAT, COMPLETIONS, question

TOKENS = 4
BOUNDS = {CHAT: Cost(740, 1400, 180, 17_600), COMPLETIONS: Cost(730, 1360, 170, 17_200)}
WRITES = TOKENS
"""A chunk a step, the first with the response's head, the last with the end."""

MADE = {"task": 1, "future": 2, "callback": 5 + TOKENS, "timer": 1}
"""A step has one callback. The timer is uvicorn's, for connections that nobody uses."""


class Exchanges:
    """One after the other, on one connection."""

    def __init__(self, server: Server, path: str) -> None:
        self._server = server
        self._protocol, self.client = server.connect()
        self._content = request(path, question(path, "Hello, world! " * 20, max_tokens=TOKENS))

    def exchange(self) -> None:
        server = self._server
        server.wires.running.clear()
        self.client.last = b""
        server.in_loop(self._protocol.data_received, self._content)
        for place in range(TOKENS):
            server.deliver(server.step(prefill=place == 0, ends=place == TOKENS - 1))
        assert self.client.last.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.mark.parametrize("path", BOUNDS)
def test_a_short_streamed_answer(path: str) -> None:
    with Server() as server:
        exchanges = Exchanges(server, path)
        exchanges.exchange()
        trace = traced(exchanges.exchange)
        assert not trace.cost.exceeds(BOUNDS[path]), (trace.cost, trace)


@pytest.mark.parametrize("path", BOUNDS)
def test_one_task_and_a_write_a_step(path: str) -> None:
    with Server() as server:
        exchanges = Exchanges(server, path)
        exchanges.exchange()
        server.loop.made.clear()
        written = exchanges.client.writes
        exchanges.exchange()
        assert exchanges.client.writes == written + WRITES
        assert server.loop.made == MADE
