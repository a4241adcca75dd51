"""The address that HTTP is served at: bound at the start, so that it is this process's, and listened on once there is
somebody to answer."""

import os
import socket
import struct
from pathlib import Path

BACKLOG = 2048


class CannotListen(Exception):
    """The address to listen on is taken, or not this machine's."""


def bind(host: str | None, port: int, uds: str | None) -> socket.socket:
    """A bound socket that does not listen yet: all interfaces for no host, any free port for 0."""
    family = socket.AF_UNIX if uds else socket.AF_INET6 if host and ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        if uds:
            _bind_path(bound, uds)
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((host or "", port))
        return bound
    except (OSError, TypeError) as error:  # TypeError: a name of a host that cannot be one
        bound.close()
        flags, where = ("--uds", uds) if uds else ("--host, --port", f"{host or '0.0.0.0'}:{port}")
        reason = getattr(error, "strerror", None) or error
        raise CannotListen(f"{flags}: cannot listen on {where}: {reason}") from None


def adopt(descriptor: int) -> socket.socket:
    """The bound socket that somebody hands over."""
    try:
        adopted = socket.socket(fileno=descriptor)
    except OSError as error:
        raise CannotListen(
            f"--listen-fd: descriptor {descriptor} is no socket to listen on: {error.strerror}"
        ) from None
    if adopted.type != socket.SOCK_STREAM:
        adopted.close()
        raise CannotListen(f"--listen-fd: descriptor {descriptor} is no socket to listen on")
    return adopted


def _bind_path(bound: socket.socket, path: str) -> None:
    if Path(path).is_socket() and not _is_answered(path):
        Path(path).unlink()  # a server that is gone left it behind
    bound.bind(path)


def _is_answered(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(path)
        except ConnectionRefusedError:
            return False
        return True


def _is_ours(path: str) -> bool:
    """Whether who connects to that path reaches this process. Until it listens, its socket looks left behind."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(path)
        except OSError:
            return False
        pid, _, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return bool(pid == os.getpid())


def address_of(bound: socket.socket) -> str:
    """What a client puts before the path."""
    if bound.family == socket.AF_UNIX:
        return f"unix:{bound.getsockname()}"
    host, port = bound.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def listen(bound: socket.socket) -> None:
    """Raises CannotListen: an address may have been taken since it was bound."""
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        raise CannotListen(f"cannot listen on {address_of(bound)}: {error.strerror or error}") from None
    if bound.family == socket.AF_UNIX and not _is_ours(bound.getsockname()):
        raise CannotListen(f"cannot listen on {address_of(bound)}: another server took its place")
