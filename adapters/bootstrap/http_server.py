"""uvicorn over a socket that is bound already, under this process's own signal handling."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from pathlib import Path

import uvicorn
from litestar import Litestar

LEAST_SHUTDOWN_S = 0.2
"""uvicorn cancels after no time at all without looking whether there is anything to cancel."""

CANCELLED_WITHIN_S = 5.0
"""How long a cancelled exchange has for its last words, such as an abort."""


class CannotBind(Exception):
    """The address to listen on is taken or not this machine's."""


def bind(host: str | None, port: int, uds: str | None) -> socket.socket:
    """A bound socket that does not listen yet: all interfaces for no host, any free port for 0."""
    try:
        if uds:
            Path(uds).unlink(missing_ok=True)
            bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            bound.bind(uds)
            return bound
        family = socket.AF_INET6 if host and ":" in host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host or "", port))
        return bound
    except OSError as error:
        where = uds or f"{host or '0.0.0.0'}:{port}"
        raise CannotBind(f"cannot listen on {where}: {error.strerror or error}") from None


def address_of(bound: socket.socket) -> str:
    """What a client puts before the path."""
    if bound.family == socket.AF_UNIX:
        return f"unix:{bound.getsockname()}"
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class HttpServer:
    """Serves until told to stop."""

    def __init__(self, app: Litestar, bound: socket.socket, *, keep_alive_s: int, shutdown_s: int) -> None:
        """After `stop`, running exchanges have `shutdown_s` seconds to end before they are cancelled."""
        self._bound = bound
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                loop="none",
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=keep_alive_s,
                timeout_graceful_shutdown=max(shutdown_s, LEAST_SHUTDOWN_S),  # type: ignore[arg-type] # seconds all the same
            )
        )

    def stop(self) -> None:
        self._server.should_exit = True

    async def serve(self) -> None:
        await self._server.serve(sockets=[self._bound])
        if cancelled := self._server.server_state.tasks:
            await asyncio.wait(cancelled, timeout=CANCELLED_WITHIN_S)


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are handled from before the engine's handshake on, so not here."""
        yield
