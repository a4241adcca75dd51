"""An engine that somebody else started, and that is lost: the server says so, to everyone, until it is told to stop."""

import asyncio

import pytest

from tests.e2e.programs import Engine, Programs, Server, first_frame, last_frames, log_of
from tests.http.serving import CHAT, COMPLETIONS, ENDPOINTS

REASONS = {
    "dead": "it says that it failed, and its log says why",
    "exit": "engine 0 closed its connection",
    "garbage": "it sent a message that cannot be read: ",
}
"""What is said of each way to fail."""


@pytest.fixture(scope="module")
def doomed(shared_programs: Programs) -> dict[str, tuple[Server, Engine]]:
    """One for each way, started together."""
    return {way: shared_programs.external(engine=("--fail", way, "--fail-after", "20")) for way in REASONS}


@pytest.mark.parametrize("way", REASONS)
async def test_a_lost_engine(doomed: dict[str, tuple[Server, Engine]], way: str) -> None:
    server, _ = doomed[way]
    await server.ready()
    stream = await server.connect(CHAT, stream=True)
    answer = asyncio.create_task(server.ask(COMPLETIONS))
    await first_frame(stream)

    *frames, last = await last_frames(stream)
    assert all("error" not in frame for frame in frames)
    message = last["error"]["message"]
    assert message.startswith(f"The engine died: {REASONS[way]}")
    assert last["error"]["code"] == 500
    assert await answer == (500, {"error": last["error"]})

    assert await server.health() == 503
    for path in ENDPOINTS:
        for is_streamed in (False, True):
            assert await server.ask(path, stream=is_streamed) == (500, {"error": last["error"]})
    complaints = [line for line in log_of(server).splitlines() if not line.startswith("INFO")]
    assert complaints == [message.replace("The engine died", "ERROR   the engine died")]
    await server.stops()
