"""uvicorn over a socket that listens already, under this process's own signal handling."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Generator
from functools import partial

import uvicorn
from litestar.types import ASGIApp

from adapters.bootstrap.http_protocol import HttpProtocol
from adapters.bootstrap.outlets import Outbox

LAST_WORDS_S = 2
"""How long a client that reads slowly has for the end of its answer, before it is cut off."""


class HttpServer:
    """Serves until told to stop."""

    def __init__(self, app: ASGIApp, listener: socket.socket, *, keep_alive_s: int, drain_s: int) -> None:
        """After `stop`, running exchanges have `drain_s` seconds, and some for their last words, to end."""
        self._listener = listener
        # uvicorn takes being cut off for a defect of the application, and shows where it happened to be
        logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
        self._server = _Uvicorn(
            uvicorn.Config(
                app,
                loop="none",
                http=partial(HttpProtocol, outbox=Outbox()),  # type: ignore[arg-type]  # it calls it
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,  # they say who the client is, which nothing here asks
                server_header=False,
                timeout_keep_alive=keep_alive_s,
                timeout_graceful_shutdown=drain_s + LAST_WORDS_S,
            )
        )

    def stop(self) -> None:
        self._server.should_exit = True

    async def serve(self) -> None:
        await self._server.serve(sockets=[self._listener])
        if cancelled := self._server.server_state.tasks:
            await asyncio.wait(cancelled, timeout=LAST_WORDS_S)


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are handled from before the engine's handshake on, so not here."""
        yield
