"""Meeting the engines: each says hello, is told where to connect to, connects once its model is loaded, and is ready.

Where vLLM's own launcher started us, it does the first part, and engines only connect.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import zmq
from msgspec import Struct

from adapters.outbound.vllm_engine.edge_reader import EdgeReader
from adapters.outbound.vllm_engine.transport import EngineSockets
from adapters.outbound.vllm_engine.versions import SPOKEN, is_spoken
from adapters.outbound.vllm_engine.wire import (
    HELLO,
    READY,
    EngineAddresses,
    EngineIdentification,
    EngineInit,
    HandshakeStatus,
    Message,
    decode,
    encode,
    identity_of,
)
from domain.errors import EngineFailure

logger = logging.getLogger("northbound")

READY_TIMEOUT = 600.0
"""Seconds that engines have to load their model. Same as vLLM."""


class HandshakeFailed(EngineFailure):
    """The engines that were waited for did not come, or cannot be served."""


class EngineFacts(Struct, frozen=True):
    """What is known of the engines once all are ready."""

    version: str
    max_model_len: int
    """The least of any."""


class Handshake:
    """The conversation without its sockets: give it messages, send what it answers. Raises HandshakeFailed."""

    def __init__(
        self, engines: Sequence[int], addresses: EngineAddresses | None, allow_engine_version: Sequence[str] = ()
    ) -> None:
        """`addresses` is what engines are told; None when they were told already, and neither say hello nor ready."""
        self._engines = {identity_of(index): index for index in engines}
        self._addresses = addresses
        self._allowed = allow_engine_version
        self._greeted: set[bytes] = set()
        self._ready: set[bytes] = set()
        self._connected: dict[bytes, EngineIdentification] = {}

    @property
    def is_complete(self) -> bool:
        return all(map(self._has_come, self._engines))

    @property
    def facts(self) -> EngineFacts:
        """Only when complete."""
        readies = self._connected.values()
        return EngineFacts(next(iter(readies)).vllm_version, min(ready.max_model_len for ready in readies))

    def on_status(self, identity: bytes, payload: bytes) -> bytes | None:
        """A message on the handshake socket, and the answer to it."""
        if not self._is_engine(identity):
            return None
        status = _read(payload, HandshakeStatus, self._engines[identity]).status
        if status == HELLO and self._addresses is not None:
            # an engine that is started anew says hello again
            self._greeted.add(identity)
            return encode(EngineInit(addresses=self._addresses))
        if status == READY:
            self._ready.add(identity)
        return None

    def on_connected(self, identity: bytes, payload: bytes) -> None:
        """The first message of an engine on the input socket."""
        if not self._is_engine(identity):
            return
        ready = _read(payload, EngineIdentification, self._engines[identity])
        if not is_spoken(ready.vllm_version, self._allowed):
            raise HandshakeFailed(
                f"Engine {self._engines[identity]} is vLLM {ready.vllm_version}, which is not one of those known here: "
                f"{' and '.join(SPOKEN)}. To try it all the same: --allow-engine-version {ready.vllm_version}"
            )
        self._connected[identity] = ready

    def on_lost(self, identity: bytes) -> None:
        """An engine left."""
        if self._connected.pop(identity, None) is not None:
            raise HandshakeFailed(f"Engine {self._engines[identity]} left before all engines were ready.")

    def timed_out(self, seconds: float) -> HandshakeFailed:
        """What to say of the engines that did not come."""
        missing = [str(index) for identity, index in self._engines.items() if not self._has_come(identity)]
        greeted = [str(self._engines[identity]) for identity in sorted(self._greeted)]
        told = f" Said hello: {', '.join(greeted) or 'none'}." if self._addresses is not None else ""
        return HandshakeFailed(
            f"Within {seconds:g} s, these of {len(self._engines)} engines were not ready: {', '.join(missing)}.{told}"
        )

    def _has_come(self, identity: bytes) -> bool:
        return identity in self._connected and (self._addresses is None or identity in self._ready)

    def _is_engine(self, identity: bytes) -> bool:
        if identity in self._engines:
            return True
        if len(identity) == len(identity_of(0)):
            index = int.from_bytes(identity, "little")
            raise HandshakeFailed(
                f"Engine {index} came, but {len(self._engines)} engines are expected, "
                f"{min(self._engines.values())} to {max(self._engines.values())}: --data-parallel-size must agree."
            )
        logger.warning("ignored a message on an engine socket from something that is no engine")
        return False


async def shake_hands(
    sockets: EngineSockets, handshake: Handshake, door: "zmq.Socket[bytes] | None", seconds: float
) -> EngineFacts:
    """Wait until all engines are ready, for at most so many seconds. `door` is the bound ROUTER socket where they
    say hello, if it is here that they do. May be cancelled at any moment. Raises HandshakeFailed."""
    complete: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failures: list[HandshakeFailed] = []

    def attempt(step: Callable[[], None]) -> None:
        try:
            step()
        except HandshakeFailed as failure:
            failures.append(failure)
        if not complete.done() and (failures or handshake.is_complete):
            complete.set_result(None)

    def receive_status(source: "zmq.Socket[bytes]") -> None:
        identity, *_, payload = source.recv_multipart(zmq.NOBLOCK)

        def answer() -> None:
            if (reply := handshake.on_status(identity, payload)) is not None:
                source.send_multipart((identity, reply), zmq.NOBLOCK)

        attempt(answer)

    sockets.watch(
        on_input=lambda identity, payload: attempt(lambda: handshake.on_connected(identity, payload)),
        on_lost=lambda identity: attempt(lambda: handshake.on_lost(identity)),
    )
    reader = None if door is None else EdgeReader(door, partial(receive_status, door))
    try:
        async with asyncio.timeout(seconds):
            await complete
    except TimeoutError:
        raise handshake.timed_out(seconds) from None
    finally:
        if reader is not None:
            reader.close()
    if failures:
        raise failures[0]
    return handshake.facts


def _read(payload: bytes, kind: type[Message], engine: int) -> Message:
    try:
        return decode(payload, kind)
    except msgspec.DecodeError as error:
        raise HandshakeFailed(f"Engine {engine} sent a message that cannot be read: {error}.") from error
