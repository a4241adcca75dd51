"""The ways in which a frontend and a real engine come together, each as one server to ask."""

import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from tests.real_engine.processes import Program, wait_for

API_KEY = "key-of-the-checks"
"""What the clients send."""

MODEL = "smollm2"
"""The served model name."""

ENGINE_FLAGS = (
    *("--dtype", "bfloat16"),
    *("--max-model-len", "2048"),
    *("--max-num-seqs", "64"),
    "--enforce-eager",
    "--no-enable-prefix-caching",
)
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}

READY_SECONDS = 300.0


class Home(NamedTuple):
    """What a real engine and its clients need, as script/e2e-vllm made it, and the Northbound that is to be checked."""

    python: Path
    vllm: Path
    model: Path
    adapter: Path
    """A LoRA adapter for the model."""
    northbound: Path
    lm_eval: Path
    """The Python that has lm-eval."""
    logs: Path


class Server:
    """A frontend that answers at `url`, and what was started for it. Whoever starts it closes it."""

    def __init__(self, url: str, frontend: Program, engine: Program | None = None) -> None:
        self.url = url
        self.frontend = frontend
        self.engine = engine
        """The engine, where it was started on its own."""

    def wait_until_ready(self) -> None:
        def settled() -> bool:
            return any(program.exit_status is not None for program in self._programs()) or self._is_healthy()

        wait_for(settled, READY_SECONDS)
        if not self._is_healthy():
            raise AssertionError("\n".join(["the server does not answer", *(p.tail() for p in self._programs())]))

    def terminate(self) -> int:
        """The frontend's exit status after SIGTERM."""
        self.frontend.send(signal.SIGTERM)
        return self.frontend.wait()

    def close(self) -> None:
        for program in self._programs():
            program.kill()

    def _programs(self) -> list[Program]:
        return [self.frontend, self.engine] if self.engine else [self.frontend]

    def _is_healthy(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server once it answers. Nothing of it is left afterwards."""
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.close()


def fastapi(home: Home, *flags: str) -> Server:
    """vLLM with its own Python frontend: what the others are compared with."""
    port = _free_port()
    command = [home.vllm, "serve", *_served(home, port), *ENGINE_FLAGS, *flags]
    return Server(_url(port), _start(home, "fastapi", command))


def managed(home: Home, *flags: str, env: Mapping[str, str] | None = None) -> Server:
    """Northbound starts the engine."""
    port = _free_port()
    command = [home.northbound, "serve", *_served(home, port), "--python", home.python, *ENGINE_FLAGS, *flags]
    return Server(_url(port), _start(home, "managed", command, env))


def external(home: Home, *flags: str) -> Server:
    """Northbound waits for an engine that is started elsewhere."""
    port, handshake_port = _free_port(), _free_port()
    address = ["--data-parallel-address", "127.0.0.1", "--data-parallel-rpc-port", str(handshake_port)]
    frontend = [home.northbound, "serve", *_served(home, port), "--data-parallel-size-local", "0", *address, *flags]
    engine = [home.vllm, "serve", home.model, "--headless", "--data-parallel-size", "1", *address, *ENGINE_FLAGS]
    return Server(_url(port), _start(home, "external-frontend", frontend), _start(home, "external-engine", engine))


def supervised(home: Home, *flags: str) -> Server:
    """vLLM starts the engine, and Northbound as its frontend."""
    port = _free_port()
    command = [home.vllm, "serve", *_served(home, port), *ENGINE_FLAGS, *flags]
    frontend = {"VLLM_USE_RUST_FRONTEND": "1", "VLLM_RUST_FRONTEND_PATH": str(home.northbound)}
    return Server(_url(port), _start(home, "supervised", command, frontend))


def _served(home: Home, port: int) -> list[str | Path]:
    return [home.model, "--served-model-name", MODEL, "--host", "127.0.0.1", "--port", str(port)]


def _start(home: Home, name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> Program:
    return Program(name, command, {**ENVIRONMENT, **(env or {})}, home.logs / f"{name}.log")


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
