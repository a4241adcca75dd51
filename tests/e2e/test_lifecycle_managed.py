"""A server that started its engine: neither outlives the other, whoever of them ends first and however."""

import signal

import pytest

from tests.e2e.programs import Programs, Server, ends, first_frame, last_frames, log_of, until
from tests.e2e.serving import client_at
from tests.fakes import vllm_serve
from tests.http.serving import CHAT

PROCESSES = 4
"""The server, the guard of what it starts, what stands for `vllm serve`, and the engine."""


@pytest.fixture(scope="module")
def managing(shared_programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Server]:
    """One for each way to end, started together."""
    directory = tmp_path_factory.mktemp("vllm")
    env = {"PYTHONPATH": vllm_serve.install(directory)}

    def start(name: str, *words: str) -> Server:
        own = ("--pid-file", str(directory / f"{name}.pid"), *shared_programs.engine_flags)
        return shared_programs.serve(shared_programs.model, *own, *words, env=env)

    return {
        "doomed": start("doomed", "--fail", "disconnect", "--fail-after", "20"),
        "stopped": start("stopped"),
        "killed": start("killed"),
    }


async def test_an_engine_that_is_lost_ends_the_server(managing: dict[str, Server]) -> None:
    """What ran is told, and so is whoever started the server. The engine's process would not end by itself."""
    server = await managing["doomed"].ready()
    stream = await server.connect(CHAT, stream=True)
    await first_frame(stream)
    *_, last = await last_frames(stream)
    assert last["error"]["message"].startswith("The engine died: ")
    assert await ends(server) == 1
    assert not server.running()
    complaints = [line for line in log_of(server).splitlines() if not line.startswith("INFO")]
    assert complaints == ["ERROR   the engine died: engine 0 closed its connection"]


async def test_a_server_that_is_stopped_ends_its_engine(managing: dict[str, Server]) -> None:
    """Idle, with a connection that a client keeps."""
    server = await managing["stopped"].ready()
    assert (await server.ask(CHAT, max_tokens=1))[0] == 200
    assert len(server.running()) == PROCESSES
    async with client_at(server.address) as client:
        await client.get("/health")
        await server.stops(signal.SIGINT)
    assert not server.running()


async def test_a_server_that_is_killed_takes_its_engine_along(managing: dict[str, Server]) -> None:
    server = await managing["killed"].ready()
    assert len(server.running()) == PROCESSES
    server.send(signal.SIGKILL)
    assert await ends(server) == -signal.SIGKILL
    await until(server, lambda: not server.running(), "the engine's end")
