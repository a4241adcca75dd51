"""The sockets between this frontend and its engines: opened here, or adopted from who started us."""

import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import zmq
from zmq.utils.monitor import parse_monitor_message

from adapters.outbound.vllm_engine.edge_reader import EdgeReader
from adapters.outbound.vllm_engine.wire import EngineAddresses
from domain.errors import EngineFailure

LINGER_MS = 100
"""How long closing waits for what was sent last, such as aborts."""

KEEPALIVE = {zmq.TCP_KEEPALIVE: 1, zmq.TCP_KEEPALIVE_IDLE: 30, zmq.TCP_KEEPALIVE_INTVL: 10, zmq.TCP_KEEPALIVE_CNT: 3}
"""In seconds, and how often: an engine's machine that is gone without a word is noticed in a minute."""

CONNECTION_EVENTS = zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED


class TransportFailure(EngineFailure):
    """A socket for engines could not be opened."""


class PeerLost(EngineFailure):
    """An engine is not connected, so nothing can be sent to it."""


OnInput = Callable[[bytes, bytes], None]
"""Given an engine's identity and what it sent on the input socket."""

OnLost = Callable[[bytes], None]
"""Given the identity of an engine that had sent something on the input socket, and is no longer connected to it."""

OnOutput = Callable[[list[bytes]], None]
"""Given the frames of one message of the output socket."""


class EngineSockets:
    """Two bound sockets: input, which requests go to, and output, which tokens come from.

    Nothing is read before someone is told; no callback may raise.
    """

    def __init__(
        self, requests: "zmq.Socket[bytes]", outputs: "zmq.Socket[bytes]", monitor: "zmq.Socket[bytes]"
    ) -> None:
        self._input = requests
        self._output = outputs
        self._monitor = monitor
        self._readers: list[EdgeReader] = []
        self._input_reader: EdgeReader | None = None
        self._connections: dict[int, bytes] = {}  # who is at the other end of each descriptor, once it has spoken
        self._on_input: OnInput
        self._on_lost: OnLost
        self._on_output: OnOutput

    @property
    def addresses(self) -> EngineAddresses:
        """Where engines connect to."""
        return EngineAddresses(inputs=[endpoint_of(self._input)], outputs=[endpoint_of(self._output)])

    def watch(self, on_input: OnInput, on_lost: OnLost) -> None:
        """From now on tell these of engines that come and go."""
        self._on_input, self._on_lost = on_input, on_lost
        if self._input_reader is None:
            self._input_reader = EdgeReader(self._input, self._receive_input)
            self._readers += self._input_reader, EdgeReader(self._monitor, self._receive_event)

    def read_outputs(self, on_output: OnOutput) -> None:
        """From now on tell this of outputs; called once."""
        self._on_output = on_output
        self._readers.append(EdgeReader(self._output, self._receive_output))

    def send(self, identity: bytes, kind: bytes, message: bytes) -> None:
        """Send to one engine, without waiting. Raises PeerLost."""
        try:
            self._input.send_multipart((identity, kind, message), zmq.NOBLOCK)
        except zmq.ZMQError as error:
            raise PeerLost(f"nothing can be sent to engine {int.from_bytes(identity, 'little')}: {error}") from error
        if self._input_reader is not None:
            self._input_reader.after_send()

    def stop_reading(self) -> None:
        for reader in self._readers:
            reader.close()

    def _receive_output(self) -> None:
        self._on_output(self._output.recv_multipart(zmq.NOBLOCK))

    def _receive_input(self) -> None:
        frames = self._input.recv_multipart(zmq.NOBLOCK, copy=False)
        try:
            identity, descriptor = frames[0].bytes, int(frames[0].get(zmq.SRCFD))
        except zmq.ZMQError:
            return  # whoever sent it is gone already, and was no engine that is known
        # What became of connections up to this message was told on another socket. Descriptors are used again.
        self._receive_pending_events()
        is_connected = descriptor in self._connections
        if is_connected:
            self._connections[descriptor] = identity
        self._on_input(identity, frames[-1].bytes)
        if not is_connected:
            self._on_lost(identity)

    def _receive_pending_events(self) -> None:
        try:
            while True:
                self._receive_event()
        except zmq.Again:
            return

    def _receive_event(self) -> None:
        event = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
        descriptor = int(event["value"])
        if event["event"] == zmq.EVENT_ACCEPTED:
            self._connections[descriptor] = b""
        elif identity := self._connections.pop(descriptor, b""):
            self._on_lost(identity)


@contextmanager
def doorstep(host: str, port: int) -> Iterator["zmq.Socket[bytes]"]:
    """Where engines say hello: a ROUTER socket at a TCP port of `host`; 0 is a free one."""
    with _context() as context:
        door = _socket(context, zmq.ROUTER)
        door.setsockopt(zmq.ROUTER_HANDOVER, 1)  # an engine that is started anew comes under the same identity
        _bind_tcp(door, host, port)
        yield door


@contextmanager
def local_sockets() -> Iterator[EngineSockets]:
    """Sockets for engines on this machine: Unix sockets in a directory that only this user may enter."""
    directory = Path(tempfile.mkdtemp(prefix="northbound-"))
    try:
        with _sockets() as sockets:
            _bind(sockets._input, f"ipc://{directory}/input")
            _bind(sockets._output, f"ipc://{directory}/output")
            yield sockets
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def network_sockets(host: str) -> Iterator[EngineSockets]:
    """Sockets for engines anywhere: free TCP ports of `host`, the name or address that engines know this one by."""
    with _sockets() as sockets:
        _bind_tcp(sockets._input, host)
        _bind_tcp(sockets._output, host)
        yield sockets


@contextmanager
def adopted_sockets(input_fd: int, output_fd: int) -> Iterator[EngineSockets]:
    """Sockets upon listening descriptors, inherited from whoever told the engines of them."""
    with _sockets() as sockets:
        _adopt(sockets._input, input_fd, "--input-listener-fd")
        _adopt(sockets._output, output_fd, "--output-listener-fd")
        yield sockets


def endpoint_of(bound: "zmq.Socket[bytes]") -> str:
    """Where others connect to."""
    return bound.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0")


@contextmanager
def _context() -> Iterator["zmq.Context[zmq.Socket[bytes]]"]:
    context = zmq.Context()
    try:
        yield context
    finally:
        context.destroy(linger=LINGER_MS)


@contextmanager
def _sockets() -> Iterator[EngineSockets]:
    with _context() as context:
        requests, outputs = _socket(context, zmq.ROUTER), _socket(context, zmq.PULL)
        for option in (zmq.SNDHWM, zmq.RCVHWM):
            requests.setsockopt(option, 0)
        requests.setsockopt(zmq.ROUTER_MANDATORY, 1)
        for option, value in KEEPALIVE.items():
            requests.setsockopt(option, value)
        outputs.setsockopt(zmq.RCVHWM, 0)
        sockets = EngineSockets(requests, outputs, requests.get_monitor_socket(CONNECTION_EVENTS))
        try:
            yield sockets
        finally:
            sockets.stop_reading()
            requests.disable_monitor()


def _socket(context: "zmq.Context[zmq.Socket[bytes]]", kind: int) -> "zmq.Socket[bytes]":
    """One that takes no peer of ZMTP 1.0, which is what libzmq makes of whatever bytes a port scanner sends."""
    opened = context.socket(kind)
    opened.setsockopt(zmq.ZAP_DOMAIN, b"northbound")
    return opened


def _adopt(target: "zmq.Socket[bytes]", descriptor: int, flag: str) -> None:
    try:
        listener = socket.socket(fileno=descriptor)
    except OSError as error:
        raise TransportFailure(f"{flag}: descriptor {descriptor} is no socket: {error.strerror}.") from error
    try:
        # libzmq takes it on trust, and ends the whole process when it cannot accept
        if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise TransportFailure(f"{flag}: descriptor {descriptor} is no listening socket.")
        listener.setblocking(False)
        listener.set_inheritable(False)
        name, is_ipv6 = listener.getsockname(), listener.family == socket.AF_INET6
        is_unix = listener.family == socket.AF_UNIX
    finally:
        listener.detach()
    if is_ipv6:
        target.setsockopt(zmq.IPV6, 1)
    target.setsockopt(zmq.USE_FD, descriptor)
    _bind(target, f"ipc://{name}" if is_unix else _tcp(name[0], name[1]))


def _bind_tcp(target: "zmq.Socket[bytes]", host: str, port: int = 0) -> None:
    try:
        family, *_, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise TransportFailure(f"--data-parallel-address: cannot listen for engines at {host}: {error}.") from error
    if family == socket.AF_INET6:
        target.setsockopt(zmq.IPV6, 1)
    try:
        _bind(target, _tcp(str(address[0]), port or "*"))
    except TransportFailure as failure:
        raise TransportFailure(f"--data-parallel-address, --data-parallel-rpc-port: {failure}") from failure


def _bind(target: "zmq.Socket[bytes]", endpoint: str) -> None:
    try:
        target.bind(endpoint)
    except zmq.ZMQError as error:
        raise TransportFailure(f"cannot listen for engines at {endpoint}: {zmq.strerror(error.errno or 0)}.") from error


def _tcp(address: str, port: int | str) -> str:
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"
