"""Engines that are children of ours, and do not outlive us."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from adapters.outbound.vllm_engine.connect import connect_managed
from adapters.outbound.vllm_engine.process import GRACE, EngineCommand, EngineNotStarted, EngineProcess
from application.ports.engine import EngineDead
from domain.errors import EngineFailure
from domain.generation import FinishReason, TokenDelta
from tests.e2e.engines import eventually, read, request
from tests.fakes import vllm_serve
from tests.fakes.scripted_engine_core import soon
from tests.patience import PATIENCE_S

PARENT = """
import asyncio, sys
from adapters.outbound.vllm_engine.process import EngineProcess

async def main():
    process = EngineProcess(sys.argv[1:], grace=0.3)
    await process.start()
    await process.wait()

asyncio.run(main())
"""

CHILD = """
import os, signal, subprocess, sys
stubborn = "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);" \
    "open(sys.argv[1], 'w').write(str(os.getpid())); os.rename(sys.argv[1], sys.argv[1] + '.pid'); signal.pause()"
subprocess.Popen([sys.executable, "-c", stubborn, sys.argv[1] + "/same-group"])
subprocess.Popen([sys.executable, "-c", stubborn, sys.argv[1] + "/own-session"], start_new_session=True)
subprocess.Popen([sys.executable, "-c", stubborn, sys.argv[1] + "/orphan"]).returncode = 0
with open(sys.argv[1] + "/child", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + "/child", sys.argv[1] + "/child.pid")
signal.pause()
"""


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture
def fake_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the engine writes its process id."""
    monkeypatch.setenv("PYTHONPATH", vllm_serve.install(tmp_path))
    return tmp_path / "pid"


def pid_in(file: Path) -> int:
    return int(file.read_text())


def command(model: str, pid_file: Path) -> EngineCommand:
    return EngineCommand(python=sys.executable, model=model, arguments=["--pid-file", str(pid_file)])


def test_what_vllm_is_told() -> None:
    managed = EngineCommand(python="python3", model="org/model", arguments=["--dtype", "bfloat16"])
    assert managed.is_local
    assert managed.line("127.0.0.1", 29550) == [
        *("python3", "-m", "vllm.entrypoints.cli.main", "serve", "org/model", "--headless"),
        *("--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", "29550", "--data-parallel-size", "1"),
        *("--dtype", "bfloat16"),
    ]
    spread = EngineCommand(python="python3", model="m", data_parallel_size=4, data_parallel_size_local=2)
    assert not spread.is_local
    assert spread.line("10.0.0.1", 1)[-4:] == ["--data-parallel-size", "4", "--data-parallel-size-local", "2"]


async def test_a_managed_engine_serves_and_ends_with_us(fake_vllm: Path) -> None:
    async with connect_managed(command("good", fake_vllm)) as engine:
        stream = await engine.submit(request())
        assert await read(stream) == [TokenDelta([42], finish_reason=FinishReason.LENGTH)]
        assert not is_gone(pid_in(fake_vllm))
    assert is_gone(pid_in(fake_vllm))
    assert not engine.died.is_set()


async def test_an_engine_that_does_not_come_up_fails_at_once(
    fake_vllm: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EngineNotStarted, match="ended with exit code 1 before it was ready"):
        async with asyncio.timeout(PATIENCE_S), connect_managed(command("broken", fake_vllm)):
            pass
    assert "no such model" in capfd.readouterr().err  # what it says is not swallowed


async def test_an_engine_that_ends_later_is_dead(fake_vllm: Path) -> None:
    async with connect_managed(command("mortal", fake_vllm)) as engine:
        stream = await engine.submit(request())
        with pytest.raises(EngineDead, match=r"closed its connection|exit code 7"):
            await read(stream)
        await soon(engine.died.wait())


async def test_stopping_while_it_loads_takes_no_time(fake_vllm: Path) -> None:
    async def meet() -> None:
        async with connect_managed(command("stubborn", fake_vllm)):
            pass

    task = asyncio.create_task(meet())
    await eventually(lambda: fake_vllm.exists() and fake_vllm.read_text() != "")
    started = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    assert time.monotonic() - started < GRACE
    assert is_gone(pid_in(fake_vllm))


async def test_an_interpreter_without_vllm_is_named_and_so_is_the_cure(tmp_path: Path) -> None:
    with pytest.raises(EngineNotStarted, match=rf"{sys.executable} has no vLLM.*extra `vllm`.*--python"):
        async with connect_managed(command("good", tmp_path / "pid")):
            pass


async def test_no_interpreter_at_all() -> None:
    with pytest.raises(EngineNotStarted, match="/no/python cannot be run: No such file"):
        async with connect_managed(EngineCommand(python="/no/python", model="m")):
            pass


@pytest.mark.parametrize(("program", "code"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137)])
async def test_exit_codes(program: str, code: int) -> None:
    process = EngineProcess([sys.executable, "-c", program])
    await process.start()
    assert await soon(process.wait()) == code
    await process.stop()


async def test_what_cannot_be_run(capfd: pytest.CaptureFixture[str]) -> None:
    process = EngineProcess(["/no/such/program"])
    await process.start()
    assert await soon(process.wait()) == 127
    await process.stop()
    assert "/no/such/program: No such file" in capfd.readouterr().err


async def test_what_was_never_started_can_be_stopped() -> None:
    await EngineProcess(["/no/such/program"]).stop()


def both(file: Path) -> list[int]:
    return [int(pid) for pid in file.read_text().split()]


def start_tree(directory: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", PARENT, sys.executable, "-c", CHILD, str(directory)])


async def pids(directory: Path) -> dict[str, int]:
    names = ("child", "same-group", "own-session", "orphan")
    files = [directory / f"{name}.pid" for name in names]
    await eventually(lambda: all(file.exists() for file in files))
    return {file.stem: int(file.read_text()) for file in files}


async def test_nothing_outlives_us_when_we_are_killed(tmp_path: Path) -> None:
    parent = start_tree(tmp_path)
    running = await pids(tmp_path)
    assert not any(map(is_gone, running.values()))
    parent.kill()
    parent.wait()
    await eventually(lambda: all(map(is_gone, running.values())))


async def test_an_orphan_is_found(tmp_path: Path) -> None:
    """The command ends by itself; what it left is taken down before its end is told."""
    parent = start_tree(tmp_path)
    running = await pids(tmp_path)
    os.kill(running["child"], signal.SIGKILL)
    assert await soon(asyncio.to_thread(parent.wait)) == 0
    assert all(map(is_gone, running.values()))


async def test_a_killed_guard_ends_the_command(tmp_path: Path) -> None:
    told = tmp_path / "told"
    program = "import os, signal, sys; print(os.getppid(), os.getpid(), file=open(sys.argv[1], 'w')); signal.pause()"
    process = EngineProcess([sys.executable, "-c", program, str(told)])
    await process.start()
    await eventually(lambda: told.exists() and told.read_text().endswith("\n"))
    guard, child = both(told)
    os.kill(guard, signal.SIGKILL)
    assert await soon(process.wait()) == -signal.SIGKILL
    await eventually(lambda: is_gone(child))
    await process.stop()


def test_a_failure_to_start_is_an_engine_failure() -> None:
    assert issubclass(EngineNotStarted, EngineFailure)
