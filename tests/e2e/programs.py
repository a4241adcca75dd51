"""Northbound's commands as processes of their own: `serve` and `frontend` on one side, `mock-engine` on the other."""

import json
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from tests.e2e.engines import eventually
from tests.e2e.serving import Connection, client_at
from tests.fakes.scripted_engine_core import free_port
from tests.http.serving import question
from tests.patience import PATIENCE_S
from tests.real_engine.processes import Program

EVENT = re.compile(r"^INFO +(admitted|finished|aborted|abort ignored) (\S+)(?: by engine (\d+))?$", re.MULTILINE)

AnyProgram = TypeVar("AnyProgram", bound=Program)


class Programs:
    """Starts processes that serve a model or play its engine, and ends them."""

    def __init__(self, logs: Path, model: Path) -> None:
        self.model = model
        vocab_size = json.loads((model / "config.json").read_text())["vocab_size"]
        self.engine_flags = ("--vocab-size", str(vocab_size), "--step-ms", "20")
        self._logs = logs
        self._started: list[Program] = []

    def serve(self, *words: str | Path, env: Mapping[str, str] | None = None) -> "Server":
        """At a free port, unless `words` say where."""
        return self._start(Server, "serve", "--host", "127.0.0.1", "--port", "0", *words, env=env)

    def serve_external(self, port: int, *words: str | Path) -> "Server":
        """Waits at that port for engines that are started elsewhere."""
        return self.serve(self.model, "--data-parallel-size-local", "0", "--data-parallel-rpc-port", str(port), *words)

    def external(self, *words: str, engine: Sequence[str] = ()) -> tuple["Server", "Engine"]:
        """A server and its engine, of which neither waited for the other to start."""
        port = free_port()
        return self.serve_external(port, *words), self.mock_engine(port, *engine)

    def render(self, *words: str) -> "Server":
        return self._start(Server, "render", self.model, *words)

    def frontend(self, *words: str, pass_fds: Sequence[int]) -> "Server":
        return self._start(Server, "frontend", *words, pass_fds=pass_fds)

    def mock_engine(self, port: int, *words: str) -> "Engine":
        """Says hello at that port."""
        address = f"tcp://127.0.0.1:{port}"
        return self._start(Engine, "mock-engine", "--handshake-address", address, *self.engine_flags, *words)

    def kill(self) -> None:
        for program in self._started:
            program.kill()

    def _start(
        self,
        kind: type[AnyProgram],
        command: str,
        *words: str | Path,
        env: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> AnyProgram:
        name = f"{len(self._started)}-{command}"
        line = [sys.executable, "-m", "adapters.bootstrap", command, *words]
        program = kind(name, line, env or {}, self._logs / f"{name}.log", pass_fds)
        self._started.append(program)
        return program


class Engine(Program):
    """What says in its log what happens to requests: `mock-engine`, or a server that started one."""

    @property
    def events(self) -> dict[str, list[str]]:
        """What happened to each request, by the engine's id for it."""
        happened: dict[str, list[str]] = {}
        for event, request_id, _ in EVENT.findall(log_of(self)):
            happened.setdefault(request_id, []).append(event)
        return happened

    @property
    def used(self) -> set[str]:
        """Which of several engines in the process admitted anything."""
        return {index for event, _, index in EVENT.findall(log_of(self)) if event == "admitted"}

    async def admits(self, count: int) -> list[str]:
        """Wait until so many requests were admitted in all; gives the ids of all."""
        await until(self, lambda: len(self.events) >= count, f"{count} requests")
        return list(self.events)

    async def aborts(self, request_ids: Sequence[str]) -> None:
        """Wait until each of them was, once."""
        wanted = ["admitted", "aborted"]
        await until(self, lambda: all(self.events[each] == wanted for each in request_ids), "aborts")


class Server(Engine):
    """`serve` or `frontend`"""

    address: str = ""
    """Such as `http://127.0.0.1:40123`, once it is ready."""

    async def ready(self) -> Self:
        self.address = (await says(self, "serving ")).rpartition(" at ")[2]
        assert await self.health() == 200
        return self

    async def health(self) -> int:
        async with client_at(self.address) as client:
            return (await client.get("/health")).status_code

    async def ask(self, path: str, **fields: Any) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer in one piece."""
        async with client_at(self.address) as client:
            reply = await client.post(path, json=asking(path, **fields))
            return reply.status_code, reply.json()

    async def connect(self, path: str, **fields: Any) -> Connection:
        """A client that has asked, and has read nothing of the answer yet."""
        connection = await Connection.open(self.address, limit=1 << 20)
        await connection.post(path, asking(path, **fields))
        return connection

    async def stops(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Told so by a signal, it ends with status 0 and no word of an error."""
        self.send(number)
        assert await ends(self) == 0, self.tail()
        assert "Traceback" not in log_of(self), self.tail()


def asking(path: str, **fields: Any) -> dict[str, Any]:
    """A request that nothing but its length ends: by default, that is far off."""
    return question(path, **{"max_tokens": 2000, "ignore_eos": True, **fields})


async def first_frame(connection: Connection) -> None:
    """Wait until there is an answer."""
    assert b"200 OK" in await connection.read_until(b"data: {")


async def last_frames(connection: Connection) -> list[dict[str, Any]]:
    """What is left of an answer that has begun, up to [DONE]. Then the client goes."""
    received = await connection.read_until(b"data: [DONE]\n\n")
    connection.reset()
    return [json.loads(frame) for frame in re.findall(rb"^data: ({.*)$", received, re.MULTILINE)]


def log_of(program: Program) -> str:
    return program.log.read_text(errors="replace")


async def until(program: Program, condition: Callable[[], bool], what: str) -> None:
    """Wait until it holds. Fails, and shows what the program said, once that takes too long."""
    try:
        await eventually(condition)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE_S} s: {what}\n{program.tail()}") from None


async def says(program: Program, words: str) -> str:
    """Wait for a line with these words, and give it. Fails at once when the program ends without."""

    def lines() -> list[str]:
        return [line for line in log_of(program).splitlines() if words in line]

    await until(program, lambda: program.exit_status is not None or bool(lines()), f"the words {words!r}")
    assert lines(), f"{program.name} ended with {program.exit_status}\n{program.tail()}"
    return lines()[0]


async def ends(program: Program) -> int:
    """Wait for its exit status."""
    await until(program, lambda: program.exit_status is not None, f"the end of {program.name}")
    assert program.exit_status is not None
    return program.exit_status


async def is_refused(program: Program, complaint: str) -> None:
    """It ends by itself before it serves, with status 1 and nothing but one line, which that pattern matches."""

    def has_settled() -> bool:
        return program.exit_status is not None or "serving " in log_of(program)

    await until(program, has_settled, f"the end of {program.name}")
    assert program.exit_status == 1, program.tail()
    assert re.fullmatch(rf"northbound: error: {complaint}\n", log_of(program)), program.tail()
