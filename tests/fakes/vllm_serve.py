"""What `python -m vllm.entrypoints.cli.main serve MODEL --headless ...` is to a frontend; the model is what it does."""

import asyncio
import os
import signal
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


def main() -> None:
    serve, model, headless, *arguments = sys.argv[1:]
    assert (serve, headless) == ("serve", "--headless")
    flags = dict(zip(arguments[::2], arguments[1::2], strict=True))
    Path(flags["--pid-file"]).write_text(str(os.getpid()))
    if model == "broken":
        sys.exit("no such model")
    if model == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pause()
    asyncio.run(serve_one_token(model, flags["--data-parallel-address"], flags["--data-parallel-rpc-port"]))


async def serve_one_token(model: str, host: str, port: str) -> None:
    async with ScriptedEngineCore() as core:
        await core.start(f"tcp://{host}:{port}")
        request = await core.next_request()
        if model == "mortal":
            os._exit(7)
        await core.step(request.request_id, 42, finish_reason=FinishCode.LENGTH)
        await asyncio.Event().wait()
