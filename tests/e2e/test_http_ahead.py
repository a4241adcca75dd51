"""Requests that a client sends before the one ahead of them is answered."""

import asyncio
import json

from adapters.bootstrap.http_protocol import MOST_AHEAD, ReadingAhead
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.e2e.serving import Connection, listening
from tests.http.serving import COMPLETIONS, application, question
from tests.patience import PATIENCE_S


class SlowConnection(Connection):
    """Sends as far as the server takes it."""

    def begin_to_send(self, path: str, count: int, size: int) -> None:
        for index in range(count):
            content = json.dumps(question(path, request_id=f"{index}", user="x" * size)).encode()
            head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
            self._writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)

    async def comes_to_a_halt(self) -> int:
        """The bytes that the server has not taken, once it takes no more."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                before = self._writer.transport.get_write_buffer_size()
                await asyncio.sleep(0.2)
                if before == self._writer.transport.get_write_buffer_size():
                    return before


async def answered(connection: Connection) -> str:
    """The id of the next answer."""
    head = await connection.read_until(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    return str(json.loads(await connection.read_until(b'"metrics":null}'))["id"])


async def test_all_are_answered_in_turn_however_many_there_are_and_few_are_kept() -> None:
    gate, count, size = asyncio.Event(), 200, 100_000
    engine = ScriptedEngine([gate, *steps(104)])
    async with listening(application(engine)) as address:
        connection = await SlowConnection.open(address)
        connection.begin_to_send(COMPLETIONS, count, size)
        await engine.next_submitted()
        assert await connection.comes_to_a_halt() > count * size // 4  # of the rest, most is in the sockets' buffers
        gate.set()
        assert [await answered(connection) for _ in range(count)] == [f"cmpl-{index}" for index in range(count)]
        await connection.close()


class Reading(asyncio.Transport):
    """Whether it reads."""

    is_reading_on = True

    def pause_reading(self) -> None:
        self.is_reading_on = False

    def resume_reading(self) -> None:
        self.is_reading_on = True


def test_who_has_sent_too_much_is_not_read_until_that_is_answered() -> None:
    transport = Reading()
    flow = ReadingAhead(transport)

    def reads_after(came: int) -> bool:
        flow.pause_reading()  # as uvicorn does, when a request comes ahead of its time
        flow.read_on(came)
        return transport.is_reading_on

    assert reads_after(MOST_AHEAD)
    assert not reads_after(1)
    flow.resume_reading()  # as uvicorn does, for each request that it starts
    assert not transport.is_reading_on
    flow.ahead = 0
    flow.resume_reading()
    assert reads_after(MOST_AHEAD)
