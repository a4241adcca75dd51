"""The sockets of an emulated engine: its side of the handshake, then of the two that requests and outputs take."""

from collections.abc import Iterator, Sequence
from typing import Final

import zmq
from msgspec.msgpack import decode, encode

from adapters.outbound.vllm_engine.emulated_engine import EmulatedEngine, Message
from adapters.outbound.vllm_engine.wire import (
    HELLO,
    READY,
    EngineAddresses,
    EngineInit,
    EngineReady,
    HandshakeStatus,
    identity_of,
)

LINGER_MS: Final = 2000
"""How long closing waits for what was sent last."""

Socket = zmq.Socket[bytes]
Context = zmq.Context[Socket]


class EngineLink:
    """One engine and its connections. Nothing here waits."""

    def __init__(self, engine: EmulatedEngine) -> None:
        self.engine = engine
        self.inputs: list[Socket] = []
        """One per frontend process, as are the outputs."""
        self._outputs: list[Socket] = []

    def say_hello(self, context: Context, address: str) -> Socket:
        """Gives the socket on which the frontend's answer comes."""
        handshake = self._dealer(context, address)
        handshake.send(encode(HandshakeStatus(HELLO, local=False)))
        return handshake

    def say_ready(self, context: Context, handshake: Socket, ready: EngineReady) -> None:
        """Read the answer, connect to what it names, and tell that on both kinds of socket."""
        addresses: EngineAddresses = decode(handshake.recv(), type=EngineInit).addresses
        for address in addresses.inputs:
            self.inputs.append(self._dealer(context, address))
            self.inputs[-1].send(encode(ready))
        for address in addresses.outputs:
            output = context.socket(zmq.PUSH)
            output.setsockopt(zmq.SNDHWM, 0)
            output.connect(address)
            self._outputs.append(output)
        handshake.send(encode(HandshakeStatus(READY, local=False)))
        handshake.close(linger=LINGER_MS)

    def send(self, messages: Sequence[Message]) -> None:
        for client_index, frames in messages:
            self._outputs[client_index].send_multipart(frames)

    def broadcast(self, content: bytes) -> None:
        """Send one frame to every frontend process."""
        for output in self._outputs:
            output.send(content)

    def close(self) -> None:
        """Drop the connections, and whatever was not sent yet."""
        for connection in (*self.inputs, *self._outputs):
            connection.close(linger=0)
        self.inputs, self._outputs = [], []

    def _dealer(self, context: Context, address: str) -> Socket:
        dealer = context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.IDENTITY, identity_of(self.engine.index))
        dealer.setsockopt(zmq.RCVHWM, 0)
        dealer.connect(address)
        return dealer


def received(source: Socket) -> Iterator[tuple[bytes, bytes]]:
    """Kind and body of all messages that are there."""
    while True:
        try:
            kind, body, *_ = source.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
        yield kind, body
