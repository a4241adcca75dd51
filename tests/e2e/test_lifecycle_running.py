"""What runs is left by its client, or by a server that is told to stop: an abort reaches the engine."""

import asyncio
import signal
import socket
from urllib.parse import urlsplit

import pytest

from tests.e2e.programs import Engine, Programs, Server, ends, first_frame, last_frames, until
from tests.e2e.serving import client_at
from tests.http.serving import CHAT, COMPLETIONS, ENDPOINTS, by_endpoint

Pair = tuple[Server, Engine]


@pytest.fixture(scope="module")
def pairs(shared_programs: Programs) -> dict[str, Pair]:
    """Started together, and used by the tests in their order: the last ones stop them."""
    return {
        "slow": shared_programs.external(engine=("--step-ms", "600000")),
        "quick": shared_programs.external(),
        "patient": shared_programs.external("--shutdown-timeout", "3"),
    }


@pytest.fixture
async def slow(pairs: dict[str, Pair]) -> Pair:
    """Its engine takes so long for a step that there is no output."""
    server, engine = pairs["slow"]
    return await server.ready(), engine


@pytest.fixture
async def quick(pairs: dict[str, Pair]) -> Pair:
    server, engine = pairs["quick"]
    return await server.ready(), engine


@by_endpoint
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_client_goes_before_the_first_output(slow: Pair, path: str, stream: bool) -> None:
    server, engine = slow
    count = len(engine.events)
    connection = await server.connect(path, stream=stream)
    request_id = (await engine.admits(count + 1))[-1]
    connection.reset()
    await engine.aborts([request_id])


@by_endpoint
async def test_a_client_goes_during_a_stream(quick: Pair, path: str) -> None:
    server, engine = quick
    connection = await server.connect(path, stream=True)
    await first_frame(connection)
    request_id = list(engine.events)[-1]
    connection.reset()
    await engine.aborts([request_id])


@by_endpoint
async def test_a_client_goes_during_an_answer_in_one_piece(quick: Pair, path: str) -> None:
    server, engine = quick
    count = len(engine.events)
    connection = await server.connect(path)
    request_id = (await engine.admits(count + 1))[-1]
    other = await server.connect(path, stream=True, max_tokens=3)
    await last_frames(other)  # so the first has had its first output too
    connection.reset()
    await engine.aborts([request_id])


@pytest.mark.parametrize("admitted", [25, 50])
async def test_fifty_clients_go_at_once(quick: Pair, admitted: int) -> None:
    """Once so many were admitted: some whose request the server has not read, and some whose answer just ended."""
    server, engine = quick
    before = set(engine.events)
    connections = [
        await server.connect(ENDPOINTS[index % 2], stream=index % 3 > 0, max_tokens=2 if index % 5 == 0 else 2000)
        for index in range(50)
    ]
    await engine.admits(len(before) + admitted)
    for connection in connections:
        connection.reset()
    assert (await server.ask(CHAT, max_tokens=1))[0] == 200

    def left() -> list[str]:
        over = {"finished", "aborted"}
        return [each for each, events in engine.events.items() if sum(event in over for event in events) != 1]

    await until(engine, lambda: not left(), "the end of all")
    ended = [engine.events[each] for each in set(engine.events) - before]
    assert ["admitted", "aborted"] in ended
    assert ended.count(["admitted", "finished"]) <= 10 + 1  # the short ones, and that of who stayed
    async with client_at(server.address) as client:
        lines = (await client.get("/metrics")).text.splitlines()
    assert [line[-4:] for line in lines if line.startswith("vllm:num_requests_running{")] == [" 0.0"]


async def test_a_server_stops_before_the_first_output(slow: Pair) -> None:
    server, engine = slow
    count = len(engine.events)
    answers = [asyncio.create_task(server.ask(path, stream=stream)) for path in ENDPOINTS for stream in (False, True)]
    request_ids = (await engine.admits(count + 4))[count:]
    server.send(signal.SIGINT)
    for answer in answers:
        status, body = await answer
        assert status == body["error"]["code"] == 503
    assert await ends(server) == 0
    await engine.aborts(request_ids)


async def test_a_server_stops_during_answers(quick: Pair) -> None:
    server, engine = quick
    count = len(engine.events)
    streams = [await server.connect(path, stream=True) for path in ENDPOINTS]
    answers = [asyncio.create_task(server.ask(path)) for path in ENDPOINTS]
    request_ids = (await engine.admits(count + 4))[count:]
    for stream in streams:
        await first_frame(stream)
    server.send(signal.SIGTERM)
    for stream in streams:
        *_, frame = await last_frames(stream)
        assert frame["error"]["code"] == 503
    for answer in answers:
        status, body = await answer
        assert status == body["error"]["code"] == 503
    assert await ends(server) == 0
    await engine.aborts(request_ids)


async def test_a_server_gives_answers_the_time_that_it_was_told_to(pairs: dict[str, Pair]) -> None:
    """Those that take no longer are finished. The others end as they do elsewhere."""
    server, engine = pairs["patient"]
    await server.ready()
    endless = await server.connect(CHAT, stream=True)
    stream = await server.connect(CHAT, stream=True, max_tokens=25)
    answer = asyncio.create_task(server.ask(COMPLETIONS, max_tokens=25))
    first, *others = await engine.admits(3)
    for connection in (endless, stream):
        await first_frame(connection)
    server.send(signal.SIGINT)
    await until(server, lambda: refuses(server), "no new clients")
    assert engine.events[first] == ["admitted"]  # and still runs
    *_, frame = await last_frames(stream)
    assert frame["choices"][0]["finish_reason"] == "length"
    status, body = await answer
    assert status == 200
    assert body["usage"]["completion_tokens"] == 25
    assert [engine.events[each] for each in others] == [["admitted", "finished"]] * 2
    *_, frame = await last_frames(endless)
    assert frame["error"]["code"] == 503
    assert await ends(server) == 0
    await engine.aborts([first])


def refuses(server: Server) -> bool:
    address = urlsplit(server.address)
    with socket.socket() as client:
        return client.connect_ex((address.hostname, address.port)) != 0
