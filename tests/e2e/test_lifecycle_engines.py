"""Engines on their way, those that are let in, and several of them behind one server."""

import asyncio
import signal
from typing import NamedTuple

import pytest

from tests.e2e.programs import Engine, Programs, Server, ends, first_frame, last_frames, log_of, says
from tests.fakes.scripted_engine_core import ScriptedEngineCore, free_port
from tests.http.serving import COMPLETIONS

VERSION = "0.31.2"
"""One that is not known here."""


class Waiting(NamedTuple):
    """Servers whose engine does not come, loads, and is of another version."""

    alone: Server
    for_loading: tuple[Server, Engine]
    for_unknown: tuple[Server, Engine]


@pytest.fixture(scope="module")
def waiting(shared_programs: Programs) -> Waiting:
    """Started together."""
    return Waiting(
        shared_programs.serve_external(free_port()),
        shared_programs.external(engine=("--ready-delay-s", "600")),
        shared_programs.external(engine=("--vllm-version", VERSION)),
    )


async def test_a_server_stops_while_no_engine_comes(waiting: Waiting) -> None:
    await says(waiting.alone, "waiting for engines")
    await waiting.alone.stops(signal.SIGINT)


async def test_a_server_stops_while_the_engine_loads(waiting: Waiting) -> None:
    server, engine = waiting.for_loading
    await says(engine, "loading takes 600 s")
    await server.stops(signal.SIGTERM)


async def test_an_engine_of_another_version_is_refused(waiting: Waiting) -> None:
    server, _ = waiting.for_unknown
    await says(server, "waiting for engines")
    assert await ends(server) == 1
    assert log_of(server).splitlines()[1:] == [
        f"northbound: error: Engine 0 is vLLM {VERSION}, which is not one of those known here: 0.32 and 0.33. "
        f"To try it all the same: --allow-engine-version {VERSION}"
    ]


async def test_all_of_several_engines_are_used_and_the_death_of_one_is_the_death_of_all(programs: Programs) -> None:
    """Two in one process, and one in the hand of this test. All are of another version, which is let in here."""
    door = free_port()
    server = programs.serve_external(door, "--data-parallel-size", "3", "--allow-engine-version", "0.31")
    pair = programs.mock_engine(door, "--engine-count", "2", "--vllm-version", VERSION)
    await says(server, "waiting for engines")
    async with ScriptedEngineCore(2, version=VERSION) as third:
        await third.start(f"tcp://127.0.0.1:{door}")
        await server.ready()
        streams = [await server.connect(COMPLETIONS, stream=True) for _ in range(3)]
        await third.step((await third.next_request()).request_id, 65)
        await asyncio.gather(*map(first_frame, streams))
        assert pair.used == {"0", "1"}

        third.disconnect()
        for stream in streams:
            *_, last = await last_frames(stream)
            assert last["error"]["message"] == "The engine died: engine 2 closed its connection"
        await pair.aborts(list(pair.events))
        assert await server.health() == 503
        await server.stops()
