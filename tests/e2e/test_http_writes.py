"""How streamed answers are written: what comes in one step, in one piece."""

import asyncio
import gc

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import TokenDelta
from tests.e2e.serving import Connection, listening
from tests.http.serving import CHAT, COMPLETIONS, application, question

H, NEXT = TokenDelta([104]), TokenDelta([105])


async def chunk(connection: Connection) -> bytes:
    """The next one of HTTP's chunked encoding: what the server wrote at once."""
    size = int((await connection.read_until(b"\r\n")).strip(), 16)
    content = await connection.read_until(b"\r\n")
    while len(content) < size + 2:
        content += await connection.read_until(b"\r\n")
    return content[:-2]


async def test_the_head_does_not_wait_for_a_frame_that_is_held_back() -> None:
    rest = asyncio.Event()
    async with listening(application(ScriptedEngine([TokenDelta([0xC3]), rest, TokenDelta([0xA9])]))) as address:
        connection = await Connection.open(address)
        await connection.post(COMPLETIONS, question(COMPLETIONS, stream=True))
        head = await connection.read_until(b"\r\n\r\n")
        rest.set()
        first = await chunk(connection)
        await connection.close()

    assert head.startswith(b"HTTP/1.1 200 ")
    assert '"text":"é"'.encode() in first


async def test_heads_that_have_no_body_come_in_their_order() -> None:
    async with listening(application(ScriptedEngine(steps(104)))) as address:
        connection = await Connection.open(address)
        await connection.send(b"HEAD /version HTTP/1.1\r\nhost: x\r\n\r\nHEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
        heads = [await connection.read_until(b"\r\n\r\n") for _ in range(2)]
        await connection.close()

    assert [head.split()[1] for head in heads] == [b"405", b"404"]


async def test_choices_that_come_in_one_step_are_one_write() -> None:
    step = asyncio.Event()
    async with listening(application(ScriptedEngine([H, step, NEXT]))) as address:
        connection = await Connection.open(address)
        await connection.post(COMPLETIONS, question(COMPLETIONS, prompt=["a", "b", "c"], stream=True))
        await connection.read_until(b"\r\n\r\n")
        before = await chunk(connection)
        step.set()
        after = await chunk(connection)
        await connection.close()

    assert (before.count(b'"text":"h"'), after.count(b'"text":"i"')) == (3, 3)
    assert after.endswith(b"data: [DONE]\n\n")


async def test_requests_that_are_over_leave_no_garbage() -> None:
    """A collection would have to look for it through all there is, and everybody would wait for it."""
    app = application(ScriptedEngine(steps(*[104] * 20)))

    async def ask(connection: Connection, count: int) -> None:
        for index in range(count):
            await connection.post(CHAT, question(CHAT, stream=index % 2 == 0, n=1 + index % 3, temperature=1.0))
            await connection.read_until(b"[DONE]\n\n\r\n0\r\n\r\n" if index % 2 == 0 else b'"metrics":null}')

    async with listening(app) as address:
        connection = await Connection.open(address)
        await ask(connection, 6)
        gc.collect()
        gc.disable()
        try:
            await ask(connection, 60)
            left = gc.collect()
        finally:
            gc.enable()
        await connection.close()

    assert left < 60
