"""Writes logprobs.json: what a real engine core sends for a few requests, and what a client gets of it.

    PYTHONPATH=. .venv/bin/python tests/wire/record_logprobs.py --model FOLDER --python ENGINE_PYTHON

FOLDER is SmolLM2-135M and ENGINE_PYTHON an interpreter that has vLLM, as script/e2e-vllm makes them (`smollm2` and
`venv/bin/python` in its cache). `--answers` alone leaves the engine's messages as they are, and writes what a client
gets of them by now: look at the difference before it is committed.
"""

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from adapters.bootstrap.app import build_app
from adapters.bootstrap.container import Container
from adapters.bootstrap.models import Model, load_model
from adapters.inbound.cli.settings import ModelSettings
from adapters.inbound.http.body import BodyLimit
from adapters.outbound.vllm_engine.client import ZmqEngineCore
from adapters.outbound.vllm_engine.handshake import READY_TIMEOUT, Handshake, shake_hands
from adapters.outbound.vllm_engine.process import EngineCommand, EngineProcess
from adapters.outbound.vllm_engine.transport import doorstep, endpoint_of, local_sockets
from application.options import ServerOptions
from tests.http.answers import undated
from tests.http.serving import post
from tests.wire.logprob_cases import CASES, Case
from tests.wire.playback import FILE, Recorded, deltas, in_process, outputs, read_file

ENGINE_FLAGS = ("--dtype", "bfloat16", "--max-model-len", "2048", "--enforce-eager", "--no-enable-prefix-caching")
ENVIRONMENT = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}


class RecordingEngine(ZmqEngineCore):
    """Keeps what the engine sends."""

    messages: list[list[bytes]]

    def _on_output(self, frames: list[bytes]) -> None:
        self.messages.append([bytes(frame) for frame in frames])
        super()._on_output(frames)


@asynccontextmanager
async def running(model: Path, python: Path) -> AsyncIterator[RecordingEngine]:
    command = EngineCommand(
        python=str(python), model=str(model), arguments=ENGINE_FLAGS, data_parallel_size=1, data_parallel_size_local=1
    )
    with doorstep("127.0.0.1", 0) as door, local_sockets() as sockets:
        host, _, port = endpoint_of(door).removeprefix("tcp://").rpartition(":")
        process = EngineProcess(command.line(host, int(port)))
        try:
            await process.start()
            facts = await shake_hands(sockets, Handshake([0], sockets.addresses), door, READY_TIMEOUT)
            engine = RecordingEngine(sockets, [0], facts)
            engine.messages = []
            engine.start()
            yield engine
            await engine.aclose()
        finally:
            await process.stop()


async def record(case: Case, engine: RecordingEngine, model: Model) -> Recorded:
    """One request to the whole application, and what its engine sent meanwhile."""
    app = build_app(
        Container(
            engine=engine,
            tokenizer=model.tokenizer,
            chat_renderer=model.chat_renderer,
            options=ServerOptions(),
            defaults=model.defaults,
            limits=model.limits,
            names=["smollm2"],
            root="smollm2",
            body_limit=BodyLimit(1 << 20),
        )
    )
    engine.messages.clear()
    response = await post(app, case.path, case.body(stream=False))
    response.raise_for_status()
    body = response.json()
    first = next(output for frames in engine.messages for output in outputs(frames))
    recorded = {
        "internal_id": first[0],
        "messages": [[frame.hex() for frame in message] for message in engine.messages],
    }
    prompt_token_ids = body.get("prompt_token_ids") or body["choices"][0]["prompt_token_ids"]
    seen = {*prompt_token_ids}
    for delta in deltas(recorded):
        for columns in (delta.logprobs, delta.prompt_logprobs):
            seen.update(columns.token_ids if columns else ())
        seen.update(delta.token_ids)
    pieces = {token_id: model.tokenizer.piece(token_id) for token_id in sorted(seen)}
    return {
        "prompt": model.tokenizer.decode(prompt_token_ids),
        "prompt_token_ids": prompt_token_ids,
        "contents": {token_id: piece.content.hex() for token_id, piece in pieces.items()},
        "specials": [token_id for token_id, piece in pieces.items() if piece.is_special],
        "eos_token_id": model.defaults.eos_token_id,
        "vocab_size": model.limits.vocab_size,
        **recorded,
        "answer": undated(response.content).decode(),
    }


async def record_all(model: Path, python: Path) -> dict[str, Recorded]:
    os.environ.update(ENVIRONMENT)
    loaded = load_model(ModelSettings(model=str(model), served_model_names=("smollm2",)))
    async with running(model, python) as engine:
        return {name: await record(case, engine, loaded) for name, case in CASES.items()}


async def answer_all(recorded: dict[str, Recorded]) -> None:
    """What a client gets of the recorded messages."""
    for name, case in CASES.items():
        recorded[name]["answer"] = (await in_process(name, recorded[name], stream=False)).decode()
        if case.streams:
            recorded[name]["streamed"] = (await in_process(name, recorded[name], stream=True)).decode()


def main() -> None:
    parser = argparse.ArgumentParser(description="Record a real engine's messages, and what a client gets of them.")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--answers", action="store_true", help="keep the messages that are there")
    given = parser.parse_args()
    recorded = read_file() if given.answers else asyncio.run(record_all(given.model, given.python))
    live = {name: each["answer"] for name, each in recorded.items()}
    asyncio.run(answer_all(recorded))
    if not given.answers and live != {name: each["answer"] for name, each in recorded.items()}:
        raise SystemExit("what was played back is not what was answered")
    FILE.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
