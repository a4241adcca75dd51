"""uvicorn over a socket that is bound already, under this process's own signal handling."""

import asyncio
import contextlib
import socket
from collections.abc import Generator
from pathlib import Path

import uvicorn
from litestar.types import ASGIApp

BACKLOG = 2048
LAST_WORDS_S = 2
"""How long a client that reads slowly has for the end of its answer, before it is cut off."""


class CannotListen(Exception):
    """The address to listen on is taken, or not this machine's."""


def bind(host: str | None, port: int, uds: str | None) -> socket.socket:
    """A bound socket that does not listen yet: all interfaces for no host, any free port for 0."""
    try:
        if uds:
            return _bind_path(uds)
        family = socket.AF_INET6 if host and ":" in host else socket.AF_INET
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host or "", port))
        return bound
    except OSError as error:
        where = uds or f"{host or '0.0.0.0'}:{port}"
        raise CannotListen(f"cannot listen on {where}: {error.strerror or error}") from None


def adopt(descriptor: int) -> socket.socket:
    """The bound socket that somebody hands over."""
    try:
        return socket.socket(fileno=descriptor)
    except OSError as error:
        raise CannotListen(f"descriptor {descriptor} is no socket to listen on: {error.strerror}") from None


def _bind_path(path: str) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if Path(path).is_socket() and not _is_answered(path):
        Path(path).unlink()  # a server that is gone left it behind
    bound.bind(path)
    return bound


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return False
        return True


def address_of(bound: socket.socket) -> str:
    """What a client puts before the path."""
    if bound.family == socket.AF_UNIX:
        return f"unix:{bound.getsockname()}"
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class HttpServer:
    """Serves until told to stop."""

    def __init__(self, app: ASGIApp, bound: socket.socket, *, keep_alive_s: int, drain_s: int) -> None:
        """After `stop`, running exchanges have `drain_s` seconds, and some for their last words, to end."""
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
                timeout_graceful_shutdown=drain_s + LAST_WORDS_S,
            )
        )

    def listen(self) -> None:
        """Raises CannotListen: an address may have been taken since it was bound."""
        try:
            self._bound.listen(BACKLOG)
        except OSError as error:
            raise CannotListen(f"cannot listen on {address_of(self._bound)}: {error.strerror or error}") from None

    def stop(self) -> None:
        self._server.should_exit = True

    async def serve(self) -> None:
        await self._server.serve(sockets=[self._bound])
        if cancelled := self._server.server_state.tasks:
            await asyncio.wait(cancelled, timeout=LAST_WORDS_S)


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are handled from before the engine's handshake on, so not here."""
        yield
