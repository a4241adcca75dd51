"""CPU per streamed token, from the engine's step to the client's bytes, by how many alternatives are asked for.

The whole application in process: service, detokenizer, encoders, SSE; no sockets, one token a step, the byte
vocabulary. The least of some rounds counts. Another commit is measured by this same file, in turns with this tree.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from adapters.bootstrap.app import build_app
from adapters.bootstrap.container import Container
from adapters.inbound.http.body import BodyLimit
from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE, ByteTokenizer
from adapters.outbound.mock_engine.scripted import ScriptedEngine
from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from domain.generation import TokenDelta
from domain.logprobs import LogprobColumns

ROOT = Path(__file__).resolve().parents[1]
PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}
TEXTS = ("ASCII", "emoji")
ALTERNATIVES = (None, 0, 5, 20)
PARTY = "🎉".encode()

Figures = dict[str, list[float]]
"""Microseconds per token by kind of answer, one for each number of alternatives."""


def script(tokens: int, alternatives: int | None, text: str) -> list[TokenDelta]:
    """ASCII, or characters of four tokens each, in rows with other tokens of all kinds."""
    choose = random.Random(0)  # noqa: S311 - the same for every measurement
    deltas = []
    for place in range(tokens):
        token_id = PARTY[place % 4] if text == "emoji" else choose.randrange(0x20, 0x7F)
        columns = None
        if alternatives is not None:
            row = [token_id, *choose.sample(range(256), alternatives)]
            columns = LogprobColumns(len(row), row, [-choose.random() for _ in row], [1])
        deltas.append(TokenDelta([token_id], columns))
    return deltas


async def seconds(kind: str, text: str, tokens: int, alternatives: int | None) -> float:
    """CPU of one answer."""
    engine = ScriptedEngine(script(tokens, alternatives, text), max_model_len=2 * tokens + 100)
    app = build_app(
        Container(
            engine=engine,
            tokenizer=ByteTokenizer(),
            chat_renderer=PlainChat(),
            options=ServerOptions(),
            defaults=ModelDefaults(eos_token_id=EOS_TOKEN_ID),
            limits=ModelLimits(vocab_size=VOCAB_SIZE),
            names=["m"],
            root="m",
            body_limit=BodyLimit(1 << 20),
        )
    )
    body: dict[str, Any] = {"max_tokens": tokens, "stream": True}
    body |= {"messages": [{"role": "user", "content": "a"}]} if kind == "chat" else {"prompt": "a"}
    if alternatives is not None:
        body |= {"logprobs": True, "top_logprobs": alternatives} if kind == "chat" else {"logprobs": alternatives}
    start = time.process_time()
    await post(app, PATHS[kind], json.dumps(body).encode())
    return time.process_time() - start


async def post(app: Any, path: str, body: bytes) -> None:
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    to_send = [{"type": "http.request", "body": body, "more_body": False}]
    status = 0

    async def receive() -> Any:
        return to_send.pop() if to_send else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    assert status == 200


async def measure(tokens: int) -> Figures:
    return {
        f"{kind}, {text}": [1e6 * await seconds(kind, text, tokens, count) / tokens for count in ALTERNATIVES]
        for kind in PATHS
        for text in TEXTS
    }


def measured_in(tree: Path, tokens: int) -> Figures:
    """The figures of the packages in a tree, from a process of its own."""
    command = [sys.executable, __file__, "--once", "--tokens", str(tokens)]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    run = subprocess.run(command, env=environment, cwd=tree, check=True, capture_output=True, text=True)
    figures: Figures = json.loads(run.stdout)
    return figures


def least(runs: list[Figures]) -> Figures:
    return {kind: [min(values) for values in zip(*(run[kind] for run in runs), strict=True)] for kind in runs[0]}


def unpack(commit: str, folder: Path) -> None:
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, check=True, input=archive)


def show(names: list[str], figures: list[Figures]) -> None:
    headings = ["no logprobs" if count is None else f"{count} alternatives" for count in ALTERNATIVES]
    print(f"{'us of CPU per token':32}" + "".join(f"{heading:>18}" for heading in headings))
    for kind in figures[0]:
        for name, each in zip(names, figures, strict=True):
            print(f"{kind:20}{name:12}" + "".join(f"{value:18.1f}" for value in each[kind]))


def main() -> None:
    parser = argparse.ArgumentParser(prog="script/token-cost", description="CPU per streamed token.")
    parser.add_argument("--tokens", type=int, default=10_000, help="of each answer")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", metavar="COMMIT", help="measure this one, too")
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        print(json.dumps(asyncio.run(measure(given.tokens))))
        return
    with tempfile.TemporaryDirectory() as folder:
        trees = {"this tree": ROOT}
        if given.against:
            unpack(given.against, Path(folder))
            trees = {given.against[:10]: Path(folder), **trees}
        runs = [[measured_in(tree, given.tokens) for tree in trees.values()] for _ in range(given.rounds)]
        show(list(trees), [least(list(each)) for each in zip(*runs, strict=True)])


if __name__ == "__main__":
    main()
