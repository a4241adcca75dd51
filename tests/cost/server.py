"""A whole server in one process and one thread, between the bytes of its engine and those of its clients."""

import asyncio
import json
import random
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, cast

from uvicorn.server import ServerState

from adapters.bootstrap.app import DEFAULTS, build_server_app
from adapters.bootstrap.http_protocol import HttpProtocol
from adapters.bootstrap.http_server import HttpServer
from adapters.inbound.http.openai import filling
from adapters.inbound.http.openai.filling import FillRows
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.vllm_engine import row_forms
from adapters.outbound.vllm_engine.client import ZmqEngineCore
from adapters.outbound.vllm_engine.handshake import EngineFacts
from adapters.outbound.vllm_engine.row_forms import ReadRow
from adapters.outbound.vllm_engine.tensors import pack_rows
from adapters.outbound.vllm_engine.transport import EngineSockets, OnInput, OnLost, OnOutput
from adapters.outbound.vllm_engine.wire import (
    ADD,
    EngineCoreOutput,
    EngineCoreOutputs,
    EngineCoreRequest,
    FinishCode,
    PrefillStats,
    decode,
    encode,
)
from domain.logprobs import LogprobColumns
from tests.cost.counting import CountingLoop
from tests.fakes.tokenizers import byte_level_bpe
from tests.http.serving import container

LONGEST = 1 << 20
"""Tokens of a prompt and its answer."""

MOST_TURNS = 1000
"""Of the event loop, for what is to come by itself."""


class Scores(NamedTuple):
    """Ways to read and to write them."""

    read_row: ReadRow
    fill_rows: FillRows


PYTHON = Scores(row_forms.read_row, filling.fill_rows)


class Wires(EngineSockets):
    """To one engine, which is the test."""

    def __init__(self) -> None:
        self.running: list[str] = []
        """Requests in the order in which they came, by the ids that the engine knows them by."""
        self.on_output: OnOutput

    def watch(self, on_input: OnInput, on_lost: OnLost) -> None: ...

    def read_outputs(self, on_output: OnOutput) -> None:
        self.on_output = on_output

    def send(self, identity: bytes, kind: bytes, message: bytes) -> None:
        if kind == ADD:
            self.running.append(decode(message, EngineCoreRequest).request_id)

    def stop_reading(self) -> None: ...


class Connection(asyncio.Transport):
    """A client that reads what is written at once, and keeps the last of it."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.last: bytes = b""

    def write(self, data: Any) -> None:
        self.writes += 1
        self.last = data

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None: ...


class Server:
    """Answers are ASCII, a token a step, in rows with other tokens where the engine is to send any."""

    def __init__(self, *, silence_limit: float = 0, scores: Scores = PYTHON) -> None:
        self.loop = CountingLoop()
        self.wires = Wires()
        self._tokenizer = HfTokenizer(byte_level_bpe())
        self._tokens = [
            token_id
            for token_id in range(self._tokenizer.vocab_size)
            if self._tokenizer.piece(token_id).content.isalnum()
        ]
        self._state = ServerState()
        self.in_loop(self._start, silence_limit, scores)

    def _start(self, silence_limit: float, scores: Scores) -> None:
        engine = ZmqEngineCore(self.wires, [0], EngineFacts("0", LONGEST), read_row=scores.read_row)
        engine.start()
        wired = container(
            engine, tokenizer=self._tokenizer, vocab_size=self._tokenizer.vocab_size, silence_limit=silence_limit
        )
        wired.fill_rows.override(scores.fill_rows)
        server = HttpServer(build_server_app(wired, DEFAULTS), cast("socket.socket", None), keep_alive_s=5, drain_s=1)
        self._config = server._server.config
        self._config.load()
        self._new_protocol = cast("Callable[..., HttpProtocol]", self._config.http_protocol_class)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self._until(lambda: not asyncio.all_tasks(self.loop))
        self.loop.close()

    def in_loop(self, run: Callable[..., object], *args: Any) -> None:
        """Have the loop run it, and all that is ready then."""
        asyncio.SelectorEventLoop.call_soon(self.loop, run, *args)
        self.loop.turn()
        self.loop.turn()

    def _until(self, condition: Callable[[], bool]) -> None:
        for _ in range(MOST_TURNS):
            if condition():
                return
            self.loop.turn()
        raise AssertionError("what was waited for does not come")

    def connect(self) -> tuple[HttpProtocol, Connection]:
        protocol = self._new_protocol(config=self._config, server_state=self._state, app_state={}, _loop=self.loop)
        connection = Connection()
        protocol.connection_made(connection)
        return protocol, connection

    def deliver(self, *steps: list[bytes]) -> None:
        """Messages of the engine that are read one after the other, and all that comes of them."""
        self.in_loop(self._read, steps)

    def _read(self, steps: Sequence[list[bytes]]) -> None:
        for frames in steps:
            self.wires.on_output(frames)

    def ask(self, path: str, body: dict[str, Any], streams: int) -> list[Connection]:
        """So many requests, each on a connection of its own, as far as their first token."""
        connected = [self.connect() for _ in range(streams)]
        content = request(path, body)
        for protocol, _ in connected:
            self.in_loop(protocol.data_received, content)
        self._until(lambda: len(self.wires.running) == streams)
        self.deliver(self.step(_alternatives(body), prefill=True))
        self._until(lambda: all(client.writes >= 1 for _, client in connected))
        return [connection for _, connection in connected]

    def step(
        self, alternatives: int | None = None, *, seed: int = 0, prefill: bool = False, ends: bool = False
    ) -> list[bytes]:
        """The engine's message with the next token of each running request."""
        choose = random.Random(seed)
        frames = [b""]
        outputs = []
        for request_id in self.wires.running:
            row = choose.sample(self._tokens, 1 + (alternatives or 0))
            rows = None
            if alternatives is not None:
                rows = pack_rows(LogprobColumns(len(row), row, [-0.5 - at for at in range(len(row))], [1]), frames)
            outputs.append(
                EngineCoreOutput(
                    request_id,
                    row[:1],
                    rows,
                    finish_reason=FinishCode.LENGTH if ends else None,
                    prefill_stats=PrefillStats(num_prompt_tokens=9) if prefill else None,
                )
            )
        frames[0] = encode(EngineCoreOutputs(outputs=outputs, timestamp=1.0))
        return frames


def request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps({"stream": True, "max_tokens": LONGEST // 2, **body}).encode()
    return (
        f"POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    ).encode() + content


def _alternatives(body: dict[str, Any]) -> int | None:
    alternatives: int | None = body.get("top_logprobs") if body.get("logprobs") is True else body.get("logprobs")
    return alternatives
