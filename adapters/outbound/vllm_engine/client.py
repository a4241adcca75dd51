"""The engine port over ZMQ: requests out, tokens in."""

import asyncio
import logging
import secrets
import time
from collections.abc import Sequence

import msgspec

from adapters.outbound.vllm_engine.calls import ADD_LORA, EngineCalls, loading_failure
from adapters.outbound.vllm_engine.grammar_backends import Backend
from adapters.outbound.vllm_engine.handshake import EngineFacts
from adapters.outbound.vllm_engine.outputs import delta_of, failure_of
from adapters.outbound.vllm_engine.requests import engine_lora, engine_request
from adapters.outbound.vllm_engine.row_forms import ReadRow, quickest
from adapters.outbound.vllm_engine.stream import EngineTokenStream
from adapters.outbound.vllm_engine.transport import EngineSockets, PeerLost
from adapters.outbound.vllm_engine.wire import (
    ABORT,
    ADD,
    ENGINE_CORE_DEAD,
    UTILITY,
    EngineCoreOutput,
    EngineCoreOutputs,
    UnreadOutput,
    UtilityRequest,
    identity_of,
)
from application.ports.engine import EngineCore, EngineDead, EngineUnavailable, check_rank
from application.ports.lora import LoraLoader
from domain.errors import EngineFailure, RequestError
from domain.generation import GenerationRequest
from domain.lora import LoraAdapter

logger = logging.getLogger("northbound")


class NumberTooLarge(RequestError):
    """A number of the request does not fit the 64 bits that it has on the wire."""


class ZmqEngineCore(EngineCore, LoraLoader):
    """Engines that are ready, over sockets that whoever made it closes after it."""

    def __init__(
        self,
        sockets: EngineSockets,
        engines: Sequence[int],
        facts: EngineFacts,
        grammar_backend: Backend = "auto",
        read_row: ReadRow | None = None,
    ) -> None:
        """`grammar_backend` is what the engines are set to. `read_row` is the quickest there is, unless given."""
        self._sockets = sockets
        self._facts = facts
        self._grammar_backend = grammar_backend
        self._read_row = quickest() if read_row is None else read_row
        self._running: dict[str, tuple[EngineTokenStream, bytes]] = {}
        self._ranks = [identity_of(index) for index in engines]
        self._load = dict.fromkeys(self._ranks, 0)
        self._calls = EngineCalls(self._send_call)
        self._closed = False
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(EngineCoreOutputs[UnreadOutput])
        self.died = asyncio.Event()
        """Set once an engine is lost, for whatever reason."""
        self.death: str | None = None
        """The reason."""

    def start(self) -> None:
        """Begin to read what the engines send."""
        self._sockets.watch(on_input=lambda _identity, _payload: None, on_lost=self._on_lost)
        self._sockets.read_outputs(self._on_output)

    @property
    def max_model_len(self) -> int:
        return self._facts.max_model_len

    @property
    def version(self) -> str:
        return self._facts.version

    @property
    def is_alive(self) -> bool:
        return self.death is None

    async def submit(self, request: GenerationRequest) -> EngineTokenStream:
        self._check_usable()
        check_rank(request.data_parallel_rank, len(self._ranks))
        internal_id = self._internal_id(request.request_id)
        try:
            asked = engine_request(request, internal_id, time.time(), self._grammar_backend)
            message = self._encoder.encode(asked)
        except OverflowError as error:
            raise NumberTooLarge("A number in the request does not fit into 64 bits.") from error
        rank = request.data_parallel_rank
        engine = self._least_loaded() if rank is None else self._ranks[rank]
        self._send(engine, ADD, message)
        stream = EngineTokenStream(internal_id, request.sampling, self._abort)
        self._running[internal_id] = stream, engine
        self._load[engine] += 1
        return stream

    async def load_adapter(self, adapter: LoraAdapter, *, in_place: bool = False) -> None:
        self._check_usable()
        replies = await self._calls.call(self._ranks, ADD_LORA, engine_lora(adapter, in_place=in_place))
        for reply in replies:
            if (failure := loading_failure(reply, adapter)) is not None:
                raise failure

    def mark_dead(self, reason: str) -> None:
        """An engine is lost, says whoever knows. The first reason counts."""
        if self.death is not None or self._closed:
            return
        self.death = reason
        for internal_id, (_, engine) in self._running.items():
            self._send_abort(internal_id, engine)  # of several engines, the others live
        logger.error("the engine died: %s", reason)
        self._end_all(EngineDead(f"The engine died: {reason}"))
        self.died.set()

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        for internal_id, (_, engine) in self._running.items():
            self._send_abort(internal_id, engine)
        self._end_all(EngineUnavailable("The server is shutting down."))
        self._sockets.stop_reading()

    def _check_usable(self) -> None:
        if self.death is not None or self._closed:
            raise EngineDead(f"The engine died: {self.death}" if self.death else "The engine was let go of.")

    def _send(self, engine: bytes, kind: bytes, message: bytes) -> None:
        try:
            self._sockets.send(engine, kind, message)
        except PeerLost as error:
            self.mark_dead(str(error))
            raise EngineDead(f"The engine died: {self.death}") from error

    def _send_call(self, engine: bytes, call: UtilityRequest) -> None:
        self._send(engine, UTILITY, self._encoder.encode(call))

    def _on_lost(self, identity: bytes) -> None:
        if identity in self._load:
            self.mark_dead(f"engine {int.from_bytes(identity, 'little')} closed its connection")

    def _on_output(self, frames: list[bytes]) -> None:
        if len(frames) == 1 and frames[0] == ENGINE_CORE_DEAD:
            self.mark_dead("it says that it failed, and its log says why")
            return
        try:
            message = self._decoder.decode(frames[0])
            self._deliver(message.outputs, frames, message.timestamp)
            if message.utility_output is not None:
                self._calls.settle(message.utility_output)
        # Whatever a message does to us, the reader must not stop without a word: later tokens would just not come.
        except Exception as error:
            self.mark_dead(f"it sent a message that cannot be read: {error}")

    def _deliver(self, outputs: Sequence[EngineCoreOutput], frames: Sequence[bytes], produced_at: float) -> None:
        read_row = self._read_row
        for output in outputs:
            entry = self._running.get(output.request_id)
            if entry is None:
                continue  # aborted meanwhile
            stream, _ = entry
            if output.finish_reason is None and output.error is None:
                first = not stream.has_output
                stream.put(delta_of(output, frames, stream.sampling, produced_at, read_row, is_first=first))
            else:
                self._deliver_last(output, stream, frames, produced_at)

    def _deliver_last(
        self, output: EngineCoreOutput, stream: EngineTokenStream, frames: Sequence[bytes], produced_at: float
    ) -> None:
        delta = None
        failure = failure_of(output, None if stream.has_output else stream.sampling.structured_outputs)
        if failure is None:
            first = not stream.has_output
            delta = delta_of(output, frames, stream.sampling, produced_at, self._read_row, is_first=first)
        self._forget(output.request_id)  # first: there is nothing to abort any more
        if delta is not None:
            stream.put(delta)
        elif failure is not None:
            stream.fail(failure)

    def _abort(self, internal_id: str) -> None:
        entry = self._forget(internal_id)
        if entry is not None:
            self._send_abort(internal_id, entry[1])

    def _send_abort(self, internal_id: str, engine: bytes) -> None:
        try:
            self._sockets.send(engine, ABORT, self._encoder.encode([internal_id]))
        except PeerLost as error:
            self.mark_dead(str(error))

    def _forget(self, internal_id: str) -> tuple[EngineTokenStream, bytes] | None:
        entry = self._running.pop(internal_id, None)
        if entry is not None:
            self._load[entry[1]] -= 1
        return entry

    def _end_all(self, failure: EngineFailure) -> None:
        self._calls.fail(failure)
        for internal_id in list(self._running):
            entry = self._forget(internal_id)
            if entry is not None:
                entry[0].fail(failure)

    def _internal_id(self, request_id: str) -> str:
        while (internal_id := f"{request_id}-{secrets.token_hex(4)}") in self._running:
            pass
        return internal_id

    def _least_loaded(self) -> bytes:
        """Of several, the one that was not used the longest."""
        engine = min(self._load, key=self._load.__getitem__)
        self._load[engine] = self._load.pop(engine)
        return engine
