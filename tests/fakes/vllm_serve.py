"""What `python -m vllm.entrypoints.cli.main serve MODEL --headless ...` is to a frontend.

The model is what it does, unless that is a folder: then it has a child that plays the engine, as those flags say which
are not vLLM's own.
"""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from adapters.outbound.vllm_engine.wire import FinishCode
from tests.fakes.scripted_engine_core import ScriptedEngineCore

MAIN = "from tests.fakes.vllm_serve import main\nmain()\n"


def install(directory: Path) -> str:
    """Put a package named vllm there; the PYTHONPATH that makes it, and this module, importable."""
    package = directory / "vllm" / "entrypoints" / "cli"
    package.mkdir(parents=True)
    (package / "main.py").write_text(MAIN)
    for folder in (package, package.parent, package.parent.parent):
        (folder / "__init__.py").touch()
    return f"{directory}{os.pathsep}{Path(__file__).parents[2]}"


OF_VLLM = ("--pid-file", "--data-parallel-address", "--data-parallel-rpc-port", "--data-parallel-size")


def main() -> None:
    serve, model, headless, *arguments = sys.argv[1:]
    assert (serve, headless) == ("serve", "--headless")
    words = [word for word in arguments if word != "--enable-lora"]  # which every engine here does
    flags = dict(zip(words[::2], words[1::2], strict=True))
    Path(flags["--pid-file"]).write_text(str(os.getpid()))
    if Path(model).is_dir():
        sys.exit(emulate(flags))
    if model == "broken":
        sys.exit("no such model")
    if model == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pause()
    asyncio.run(serve_one_token(model, flags["--data-parallel-address"], flags["--data-parallel-rpc-port"]))


def emulate(flags: dict[str, str]) -> int:
    """Gives the engine's exit status."""
    address = f"tcp://{flags['--data-parallel-address']}:{flags['--data-parallel-rpc-port']}"
    played = [word for flag in flags.items() if flag[0] not in OF_VLLM for word in flag]
    count = flags["--data-parallel-size"]
    command = [sys.executable, "-m", "adapters.bootstrap", "mock-engine", "--handshake-address", address]
    return subprocess.call([*command, "--engine-count", count, *played])


async def serve_one_token(model: str, host: str, port: str) -> None:
    async with ScriptedEngineCore() as core:
        await core.start(f"tcp://{host}:{port}")
        request = await core.next_request()
        if model == "mortal":
            os._exit(7)
        await core.step(request.request_id, 42, finish_reason=FinishCode.LENGTH)
        await asyncio.Event().wait()
