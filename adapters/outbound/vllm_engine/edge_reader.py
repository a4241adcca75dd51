"""Reading ZMQ sockets from the event loop itself.

libzmq tells of events through one descriptor per socket, and only when something changes. So a socket is always read
until it is empty, and looked at again after every send on it; what is then left unread is not told of again.
"""

import asyncio
from collections.abc import Callable

import zmq

MESSAGES_AT_ONCE = 16
"""After so many, other tasks have their turn."""


class EdgeReader:
    """Calls `receive` until it raises zmq.Again, whenever there may be something to read.

    `receive` takes one message from the socket without waiting, and raises nothing else.
    """

    def __init__(self, source: "zmq.Socket[bytes]", receive: Callable[[], None]) -> None:
        self._source = source
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._fd = int(source.getsockopt(zmq.FD))
        self._open = True
        self._loop.add_reader(self._fd, self._drain)
        self._scheduled: asyncio.Handle | None = self._loop.call_soon(self._drain)

    def after_send(self) -> None:
        """Sending on the socket may have swallowed the sign that there is something to read."""
        if self._open and self._scheduled is None and int(self._source.getsockopt(zmq.EVENTS)) & zmq.POLLIN:
            self._scheduled = self._loop.call_soon(self._drain)

    def close(self) -> None:
        """Stop reading; before the socket is closed. May be called again, and from `receive`."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            if self._scheduled is not None:
                self._scheduled.cancel()

    def _drain(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        for _ in range(MESSAGES_AT_ONCE):
            if not self._open:
                return
            try:
                self._receive()
            except zmq.Again:
                return
        if self._open:
            self._scheduled = self._loop.call_soon(self._drain)
