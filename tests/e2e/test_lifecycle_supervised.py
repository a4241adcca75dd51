"""`northbound frontend`, with what a launcher binds, keeps for it across the start, and tells its engines of."""

import json
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import zmq
import zmq.asyncio

from adapters.outbound.vllm_engine.wire import (
    HELLO,
    READY,
    EngineAddresses,
    EngineInit,
    HandshakeStatus,
    decode,
    encode,
)
from tests.e2e.programs import Engine, Programs, Server, is_refused
from tests.e2e.serving import client_at
from tests.fakes.scripted_engine_core import free_port
from tests.http.serving import CHAT, COMPLETIONS
from tests.patience import PATIENCE_S


class Inheritance(NamedTuple):
    """What a launcher has for a frontend."""

    http: socket.socket
    inputs: socket.socket
    outputs: socket.socket

    @property
    def descriptors(self) -> list[int]:
        return [each.fileno() for each in self]

    def close(self) -> None:
        for each in self:
            each.close()


@pytest.fixture
def inheritance(tmp_path: Path) -> Iterator[Inheritance]:
    """A bound socket that does not listen, and two that do."""
    inheritance = Inheritance(socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX))
    inheritance.http.bind(("127.0.0.1", 0))
    for listener, name in ((inheritance.inputs, "inputs"), (inheritance.outputs, "outputs")):
        listener.bind(str(tmp_path / name))
        listener.listen()
    yield inheritance
    inheritance.close()


def launch(programs: Programs, descriptors: Sequence[int], pass_fds: Sequence[int], **more: Any) -> Server:
    """As vLLM does, with `more` of its arguments."""
    words = ("--listen-fd", "--input-listener-fd", "--output-listener-fd")
    given = [word for pair in zip(words, map(str, descriptors), strict=True) for word in pair]
    engines = ("--engine-start-index", "0", "--engine-count", "1", "--data-parallel-size", "1")
    args = {"model_tag": str(programs.model), "return_tokens_as_token_ids": True, "enforce_eager": True, **more}
    return programs.frontend(*given, *engines, "--args-json", json.dumps(args), pass_fds=pass_fds)


async def introduce(programs: Programs, directory: Path) -> Engine:
    """Start an engine, and tell it of the listeners in that directory."""
    addresses = EngineAddresses(inputs=[f"ipc://{directory}/inputs"], outputs=[f"ipc://{directory}/outputs"])
    port = free_port()
    with zmq.asyncio.Context() as context, context.socket(zmq.ROUTER) as door:
        door.setsockopt(zmq.RCVTIMEO, int(PATIENCE_S * 1000))
        door.bind(f"tcp://127.0.0.1:{port}")
        engine = programs.mock_engine(port)
        identity, hello = await door.recv_multipart()
        assert decode(hello, HandshakeStatus).status == HELLO
        await door.send_multipart((identity, encode(EngineInit(addresses=addresses))))
        _, ready = await door.recv_multipart()
        assert decode(ready, HandshakeStatus).status == READY
    return engine


async def test_it_serves_at_what_it_is_given_as_its_launcher_was_told_to(
    programs: Programs, inheritance: Inheritance, tmp_path: Path
) -> None:
    port = inheritance.http.getsockname()[1]
    server = launch(programs, inheritance.descriptors, inheritance.descriptors)
    inheritance.close()
    engine = await introduce(programs, tmp_path)
    await server.ready()
    assert server.address == f"http://127.0.0.1:{port}"
    _, completion = await server.ask(COMPLETIONS, max_tokens=3, logprobs=1)
    assert all(token.startswith("token_id:") for token in completion["choices"][0]["logprobs"]["tokens"])
    _, chat = await server.ask(CHAT, max_tokens=3, logprobs=True, return_tokens_as_token_ids=False)
    assert not any(row["token"].startswith("token_id:") for row in chat["choices"][0]["logprobs"]["content"])
    assert list(engine.events.values()) == [["admitted", "finished"]] * 2
    await server.stops()


async def test_adapters_are_there_before_the_first_request(
    programs: Programs, inheritance: Inheritance, tmp_path: Path
) -> None:
    module = {"name": "a", "path": str(tmp_path), "base_model_name": "second", "is_3d_lora_weight": False}
    args = {"enable_lora": True, "lora_modules": [module], "served_model_name": ["first", "second"]}
    server = launch(programs, inheritance.descriptors, inheritance.descriptors, **args)
    inheritance.close()
    await introduce(programs, tmp_path)
    await server.ready()
    async with client_at(server.address) as client:
        models = (await client.get("/v1/models")).json()["data"]
    assert [(card["id"], card["parent"]) for card in models] == [("first", None), ("second", None), ("a", "second")]
    status, answer = await server.ask(CHAT, model="a", max_tokens=1)
    assert (status, answer["model"]) == (200, "a")
    await server.stops()


async def test_nothing_to_listen_on(programs: Programs, inheritance: Inheritance) -> None:
    _, *engine_sockets = inheritance.descriptors
    server = launch(programs, [999, *engine_sockets], engine_sockets)
    await is_refused(server, "--listen-fd: descriptor 999 is no socket to listen on: Bad file descriptor")


async def test_a_listener_that_does_not_listen(programs: Programs, inheritance: Inheritance) -> None:
    http, inputs, _ = inheritance.descriptors
    with socket.socket() as idle:
        descriptors = [http, inputs, idle.fileno()]
        server = launch(programs, descriptors, descriptors)
        await is_refused(server, rf"--output-listener-fd: descriptor {idle.fileno()} is no listening socket\.")
