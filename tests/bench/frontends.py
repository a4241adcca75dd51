"""Frontends as they are measured: each in processes of its own, before an emulated engine that nobody else uses."""

import sys
import time
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct

from tests.bench.workloads import MODEL
from tests.fakes.scripted_engine_core import free_port
from tests.real_engine.processes import Program

HEALTHY_S: Final = 180.0
"""How long a frontend may take to start."""

ROOT: Final = Path(__file__).resolve().parents[2]
# -P: from PYTHONPATH, whatever the current folder is
NORTHBOUND: Final = [sys.executable, "-P", "-m", "adapters.bootstrap"]
PEER_ENVIRONMENT: Final = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
}


class Engine(Struct, frozen=True, kw_only=True):
    """What the emulated engines are like."""

    step_ms: float
    vocab_size: int
    max_model_len: int


class Command(Struct, frozen=True):
    """Starts a frontend, told where to listen for HTTP and for engines."""

    words: list[str]
    env: Mapping[str, str]
    holds: Path | None = None
    """Where it notes for how long its event loop was held, a line each, if it does."""


class Frontend:
    """One that is ready. Costs are those of the frontend and all that it started."""

    def __init__(self, name: str, command: Command, engine: Engine, logs: Path) -> None:
        """Raises AssertionError if it does not start."""
        self.name = name
        http, handshake = free_port(), free_port()
        self.address = f"http://127.0.0.1:{http}"
        playing = _playing(engine, handshake)
        self._engine = Program(f"engine of {name}", playing.words, playing.env, logs / f"{name}.engine.log")
        self._frontend: Program | None = None
        self._holds = command.holds
        self._holds_read = 0
        try:
            _wait(lambda: "waiting for a frontend" in self._engine.log.read_text(), self._engine)
            where = ["--host", "127.0.0.1", "--port", str(http)]
            where += ["--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", str(handshake)]
            where += ["--data-parallel-size", "1", "--data-parallel-size-local", "0"]
            start = time.monotonic()
            self._frontend = Program(name, [*command.words, *where], command.env, logs / f"{name}.log")
            _wait(self._is_healthy, self._frontend)
            self.health_s = time.monotonic() - start
            """From its start to the first 200 of /health, with an engine already waiting."""
        except BaseException:
            self.kill()
            raise

    def cpu_s(self) -> float:
        """User and system time so far."""
        assert self._frontend is not None
        return _cpu_s(self._frontend.pid)

    def engine_cpu_s(self) -> float:
        return _cpu_s(self._engine.pid)

    def memory_mb(self) -> tuple[float, float]:
        """Resident, and with shared pages in proportion."""
        assert self._frontend is not None
        used = [process.memory_full_info() for process in _tree(self._frontend.pid)]
        return sum(each.rss for each in used) / 1e6, sum(each.pss for each in used) / 1e6

    def longest_hold_ms(self) -> float | None:
        """Since it was last asked; None if that is not watched."""
        if self._holds is None:
            return None
        holds = self._holds.read_text().splitlines()
        new, self._holds_read = holds[self._holds_read :], len(holds)
        return max((float(hold.split()[0]) for hold in new), default=0.0)

    def kill(self) -> None:
        if self._frontend is not None:
            self._frontend.kill()
        self._engine.kill()

    def _is_healthy(self) -> bool:
        connection = HTTPConnection(self.address.removeprefix("http://"), timeout=5)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (HTTPException, OSError):
            return False
        finally:
            connection.close()


def northbound(model: Path, tree: Path = ROOT, holds: Path | None = None) -> Command:
    """As the packages of that tree have it. With `holds`, its event loop is watched."""
    started = NORTHBOUND if holds is None else [*NORTHBOUND[:-1], "tests.bench.holds", str(holds)]
    words = [*started, "serve", str(model), "--served-model-name", MODEL, "--log-level", "WARNING"]
    return Command(words, {"PYTHONPATH": str(tree)}, holds)


def rust(program: Path, model: Path) -> Command:
    return Command([str(program), "serve", str(model), "--served-model-name", MODEL], PEER_ENVIRONMENT)


def fastapi(program: Path, model: Path, engine: Engine) -> Command:
    words = [str(program), "serve", str(model), "--served-model-name", MODEL, "--dtype", "bfloat16"]
    words += ["--max-model-len", str(engine.max_model_len), "--disable-uvicorn-access-log"]
    return Command(words, PEER_ENVIRONMENT)


def _playing(engine: Engine, handshake: int) -> Command:
    words = [*NORTHBOUND, "mock-engine", "--handshake-address", f"tcp://127.0.0.1:{handshake}"]
    words += ["--step-ms", str(engine.step_ms), "--vocab-size", str(engine.vocab_size)]
    words += ["--max-model-len", str(engine.max_model_len)]
    return Command(words, {"PYTHONPATH": str(ROOT)})


def _wait(condition: Callable[[], bool], program: Program) -> None:
    """Poll often, as it is also a measurement."""
    deadline = time.monotonic() + HEALTHY_S
    while not condition():
        assert program.exit_status is None, f"{program.name} ended\n{program.tail()}"
        assert time.monotonic() < deadline, f"{program.name} does not start\n{program.tail()}"
        time.sleep(0.01)


def _tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _cpu_s(pid: int) -> float:
    # The CPU clock of a process by Linux's numbers of clocks. /proc/PID/stat counts in steps of 10 ms.
    return sum(time.clock_gettime(~process.pid << 3 | 2) for process in _tree(pid))
