"""Where to listen, and what to serve: what is wrong with either is told in one line, before any engine starts."""

import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from adapters.bootstrap.addresses import CannotListen, bind, listen
from tests.e2e.programs import Programs, Server, ends, is_refused, says
from tests.fakes import vllm_serve
from tests.fakes.scripted_engine_core import free_port
from tests.patience import PATIENCE_S


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture
def manage(programs: Programs, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts a server that is to start its engine. By the end, none was started."""
    mark = tmp_path / "engine-pid"
    env = {"PYTHONPATH": vllm_serve.install(tmp_path)}
    yield lambda model, *words: programs.serve(model, *words, "--pid-file", mark, env=env)
    assert not mark.exists()


async def test_a_taken_port(manage: Callable[..., Server], model: Path, taken: int) -> None:
    server = manage(model, "--port", str(taken))
    await is_refused(server, rf"--host, --port: cannot listen on 127\.0\.0\.1:{taken}: Address already in use")


async def test_a_model_that_is_not_there(manage: Callable[..., Server], tmp_path: Path) -> None:
    server = manage(tmp_path / "no-model")
    await is_refused(server, rf"There is no folder {tmp_path}/no-model\.")


async def test_of_two_that_race_for_a_port_the_one_that_is_later_to_listen_leaves(programs: Programs) -> None:
    """Binding is no decision: both may, as long as neither listens, which is until its engine is ready."""
    door, port = free_port(), str(free_port())
    late = programs.serve_external(door, "--port", port)
    await says(late, "waiting for engines")
    early = await programs.serve("--engine", "mock", "--port", port).ready()
    programs.mock_engine(door)
    assert await ends(late) == 1
    assert await says(late, "northbound: error:") == (
        f"northbound: error: cannot listen on http://127.0.0.1:{port}: Address already in use"
    )
    assert await early.health() == 200
    await early.stops()


def health_at(path: Path) -> int:
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=PATIENCE_S) as client:
        return client.get("http://unix/health").status_code


async def test_a_unix_socket_that_is_in_use_stays_and_one_that_was_left_is_replaced(
    programs: Programs, tmp_path: Path
) -> None:
    path = tmp_path / "socket"
    first = programs.serve("--engine", "mock", "--uds", path)
    assert (await says(first, "serving ")).endswith(f"serving mock at unix:{path}")
    second = programs.serve("--engine", "mock", "--uds", path)
    await is_refused(second, f"--uds: cannot listen on {path}: Address already in use")
    assert health_at(path) == 200

    first.kill()
    assert path.is_socket()
    third = programs.serve("--engine", "mock", "--uds", path)
    await says(third, "serving ")
    assert health_at(path) == 200
    await third.stops(signal.SIGINT)


async def test_of_two_that_race_for_a_unix_socket_the_one_that_lost_it_leaves(
    programs: Programs, tmp_path: Path
) -> None:
    """Until it listens, a socket looks as if it was left."""
    path = tmp_path / "socket"
    with bind(None, 0, str(path)) as late:
        early = programs.serve("--engine", "mock", "--uds", path)
        await says(early, "serving ")
        with pytest.raises(CannotListen, match=f"cannot listen on unix:{path}: another server took its place"):
            listen(late)
    assert health_at(path) == 200


async def test_a_file_where_the_unix_socket_should_be_is_not_touched(programs: Programs, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    server = programs.serve("--engine", "mock", "--uds", path)
    await is_refused(server, f"--uds: cannot listen on {path}: Address already in use")
    assert path.read_text() == "mine"
