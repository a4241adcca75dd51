"""Streams over a server that lets them write without waiting."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from types import SimpleNamespace
from typing import cast

import pytest
from litestar.types import Message
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from adapters.bootstrap.outlets import HeldHead, Outbox
from adapters.inbound.http.sse import EventStream, KeptAlive, Outlet, SilenceLimit, with_outlet
from application.ports.source import OnReady, Source, nobody
from tests.cost.server import Connection
from tests.patience import PATIENCE_S


class Numbers(Source[bytes]):
    """Ten of them, all there."""

    def __init__(self) -> None:
        self.taken = 0
        self.is_closed = False

    def listen(self, on_ready: OnReady) -> None: ...

    def take(self) -> bytes:
        if self.taken == 10:
            raise StopAsyncIteration
        self.taken += 1
        return b"%d" % self.taken

    def close(self) -> None:
        self.is_closed = True


class SmallOutlet(Outlet):
    """Full after every third part, until it is emptied."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.room = 3
        self._on_writable: OnReady = nobody

    @property
    def is_full(self) -> bool:
        return not self.room

    def write(self, body: bytes) -> None:
        self.written.append(body)
        self.room -= 1

    def rest(self) -> bytes:
        return b"rest"

    def listen(self, on_writable: OnReady) -> None:
        self._on_writable = on_writable

    def empty(self) -> None:
        self.room = 3
        self._on_writable()


async def test_no_more_is_taken_than_there_is_room_for() -> None:
    numbers, outlet = Numbers(), SmallOutlet()
    scope = {"type": "http"}
    with_outlet(scope, outlet)  # type: ignore[arg-type]
    sent: list[Message] = []

    async def receive() -> Message:
        return await asyncio.Event().wait()  # type: ignore[return-value]  # nobody leaves

    async def send(message: Message) -> None:
        sent.append(message)

    stream = asyncio.create_task(EventStream(numbers, SilenceLimit(0))(scope, receive, send))  # type: ignore[arg-type]
    taken = []
    while not stream.done():
        await asyncio.sleep(0)
        if outlet.is_full:
            taken.append(numbers.taken)
            outlet.empty()
    await stream

    assert taken == [3, 6, 9]
    assert b"".join(outlet.written) == b"12345678910"
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert (sent[-1]["body"], sent[-1]["more_body"]) == (b"rest", False)  # type: ignore[typeddict-item]
    assert numbers.is_closed


class Told(Source[bytes]):
    """Calls for each item once, and in the midst of the last for the end."""

    def __init__(self) -> None:
        self._items: list[bytes] = []
        self._on_ready: OnReady = nobody
        self._ended = False

    def put(self, item: bytes) -> None:
        self._items.append(item)
        self._on_ready()

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready

    def take(self) -> bytes | None:
        if self._ended:
            raise StopAsyncIteration
        if not self._items:
            return None
        item = self._items.pop(0)
        if item == b"last":
            self._ended = True
            self._on_ready()
        return item

    def close(self) -> None:
        self._ended = True


@pytest.fixture
async def under_way() -> AsyncIterator[tuple[Told, SmallOutlet, asyncio.Task[None]]]:
    """A stream that waits for its first item."""
    told, outlet = Told(), SmallOutlet()
    scope = {"type": "http"}
    with_outlet(scope, outlet)  # type: ignore[arg-type]
    started = asyncio.Event()

    async def receive() -> Message:
        return await asyncio.Event().wait()  # type: ignore[return-value]  # nobody leaves

    async def send(message: Message) -> None:
        started.set()

    stream = asyncio.create_task(EventStream(told, SilenceLimit(0))(scope, receive, send))  # type: ignore[arg-type]
    await started.wait()
    yield told, outlet, stream
    await asyncio.wait_for(stream, PATIENCE_S)


async def test_what_comes_while_there_is_no_room_is_written_when_there_is(
    under_way: tuple[Told, SmallOutlet, asyncio.Task[None]],
) -> None:
    told, outlet, _ = under_way
    written = []
    for item in (b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"last"):
        told.put(item)
        written.append(len(outlet.written))
    assert written == [1, 2, 3, 3, 3, 3, 3, 3]
    outlet.empty()
    assert len(outlet.written) == 6
    outlet.empty()
    assert b"".join(outlet.written) == b"1234567last"


async def test_the_end_is_taken_with_what_comes_last(
    under_way: tuple[Told, SmallOutlet, asyncio.Task[None]],
) -> None:
    told, outlet, stream = under_way
    told.put(b"last")
    await asyncio.wait_for(stream, PATIENCE_S)
    assert outlet.written == [b"last"]


async def test_a_silence_that_nobody_can_be_told_of_is_looked_at_once_an_interval() -> None:
    """While the client is behind, nothing is taken."""
    told: list[float] = []
    enough = asyncio.Event()

    def tell() -> None:
        told.append(asyncio.get_running_loop().time())
        if len(told) == 5:
            enough.set()

    kept = KeptAlive(Numbers(), 0.02)
    kept.listen(tell)
    await asyncio.wait_for(enough.wait(), PATIENCE_S)
    kept.close()

    assert all(later - earlier > 0.01 for earlier, later in pairwise(told))


@pytest.mark.parametrize(("is_gone", "writes"), [(False, 1), (True, 0)])
async def test_a_head_is_not_written_to_a_client_that_left_meanwhile(is_gone: bool, writes: int) -> None:
    connection = Connection()
    scope = {"method": "POST"}
    cycle = SimpleNamespace(scope=scope, transport=connection, response_started=True, disconnected=False)
    HeldHead(cast("RequestResponseCycle", cycle), Outbox())
    cycle.transport.write(b"head")
    assert connection.writes == 0
    cycle.disconnected = is_gone
    await asyncio.sleep(0)

    assert connection.writes == writes
