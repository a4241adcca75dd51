"""A real engine's messages again: over sockets as they came, or read here and played in process."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from litestar import Litestar

from adapters.bootstrap.app import build_app
from adapters.bootstrap.container import Container
from adapters.inbound.http.body import BodyLimit
from adapters.outbound.mock_engine.scripted import ScriptedEngine
from adapters.outbound.vllm_engine.wire import decode
from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from application.ports.chat_renderer import ChatRenderer
from application.ports.engine import EngineCore
from domain.chat import Message, Rendering
from domain.generation import FinishReason, TokenDelta
from domain.logprobs import LogprobColumns
from tests.e2e.engines import connected
from tests.fakes.recorded_tokenizer import RecordedTokenizer
from tests.fakes.scripted_engine_core import ScriptedEngineCore
from tests.http.answers import undated
from tests.http.exchange import Exchange
from tests.http.serving import CHAT
from tests.wire.logprob_cases import CASES

FILE = Path(__file__).with_name("logprobs.json")

FINISHES = [FinishReason.STOP, FinishReason.LENGTH]
"""By the number that stands for them."""

Recorded = Any
"""One case of the file."""


class RecordedChat(ChatRenderer):
    """One conversation."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt

    def render(self, messages: Sequence[Message], rendering: Rendering) -> str:
        return self._prompt


def read_file() -> dict[str, Recorded]:
    content: dict[str, Recorded] = json.loads(FILE.read_text())
    return content


def application(engine: EngineCore, recorded: Recorded) -> Litestar:
    contents = {int(token_id): bytes.fromhex(content) for token_id, content in recorded["contents"].items()}
    return build_app(
        Container(
            engine=engine,
            tokenizer=RecordedTokenizer(
                {recorded["prompt"]: recorded["prompt_token_ids"]}, contents, recorded["specials"]
            ),
            chat_renderer=RecordedChat(recorded["prompt"]),
            options=ServerOptions(fingerprint_mode="none"),
            defaults=ModelDefaults(eos_token_id=recorded["eos_token_id"]),
            limits=ModelLimits(vocab_size=recorded["vocab_size"]),
            names=["smollm2"],
            root="smollm2",
            body_limit=BodyLimit(1 << 20),
        )
    )


def messages(recorded: Recorded, request_id: str | None = None) -> list[list[bytes]]:
    """Frames of each, with the engine's own name of the request replaced by `request_id`, which is as long."""
    known = recorded["internal_id"].encode()
    given = known if request_id is None else request_id.encode()
    assert len(given) == len(known)
    return [[bytes.fromhex(frame).replace(known, given) for frame in message] for message in recorded["messages"]]


async def over_sockets(name: str, recorded: Recorded, *, stream: bool) -> bytes:
    """The answer from a client of the engine protocol. Streamed, each step is sent once the last one was read."""
    async with ScriptedEngineCore() as core, connected(core) as engine:
        exchange = _exchange(engine, name, recorded, stream)
        request = await core.next_request()
        chunks = int(CASES[name].path == CHAT)  # the first one of a chat comes with the first step's
        for frames in messages(recorded, request.request_id):
            await core.send_frames(*frames)
            if stream and outputs(frames):
                chunks += 1
                await exchange.until(partial(_has_chunks, chunks))
        await exchange.end()
        return undated(exchange.received)


def _has_chunks(count: int, exchange: Exchange) -> bool:
    return exchange.received.count(b"\n\n") >= count


async def in_process(name: str, recorded: Recorded, *, stream: bool) -> bytes:
    """The answer from the same steps in the scripted engine, read from the messages without the protocol's client."""
    exchange = _exchange(ScriptedEngine(deltas(recorded)), name, recorded, stream)
    await exchange.end()
    return undated(exchange.received)


def _exchange(engine: EngineCore, name: str, recorded: Recorded, stream: bool) -> Exchange:
    case = CASES[name]
    return Exchange(application(engine, recorded), case.path, case.body(stream=stream))


def deltas(recorded: Recorded) -> list[TokenDelta]:
    """One per step."""
    return [_delta(output, frames) for frames in messages(recorded) for output in outputs(frames)]


def outputs(frames: Sequence[bytes]) -> list[Any]:
    """What a message says of each request."""
    found: list[Any] = decode(frames[0], list[Any])[1]
    return found


def _delta(output: list[Any], frames: Sequence[bytes]) -> TokenDelta:
    _, token_ids, scores, prompt_scores, _, finish, stop_reason = output[:7]
    return TokenDelta(
        token_ids,
        _columns(scores, frames),
        _columns(prompt_scores, frames),
        None if finish is None else FINISHES[finish],
        stop_reason,
    )


def _columns(scores: list[Any] | None, frames: Sequence[bytes]) -> LogprobColumns | None:
    if scores is None:
        return None
    ids, logprobs, ranks = (array(tensor, frames) for tensor in scores[:3])
    return LogprobColumns(ids.shape[1], ids.ravel().tolist(), logprobs.ravel().tolist(), ranks.tolist())


def array(tensor: list[Any], frames: Sequence[bytes]) -> "np.ndarray[Any, Any]":
    dtype, shape, buffer = tensor
    content = frames[buffer] if isinstance(buffer, int) else buffer.data
    return np.frombuffer(content, np.dtype(dtype)).reshape(shape)
