"""Adapters that a server has from its start, in each way of starting it: all of them, or no server.

The numbers of cases are those of tests/http/test_cases.
"""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapters.bootstrap.lora_modules import ModuleNotLoaded, load_modules
from adapters.inbound.cli.settings import LoraModule
from application.services.lora import LoraAdapters
from tests.e2e.engines import connected
from tests.e2e.programs import Programs, Server, ends, is_refused, log_of, says
from tests.e2e.serving import client_at
from tests.fakes import vllm_serve
from tests.fakes.scripted_engine_core import ScriptedEngineCore, free_port, soon
from tests.http.serving import CHAT, COMPLETIONS
from tests.patience import PATIENCE_S


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder where there is an adapter."""
    (tmp_path / "adapter").mkdir()
    return tmp_path / "adapter"


def modules(here: Path) -> tuple[str, str]:
    return f"one={here}", json.dumps({"name": "two", "path": str(here), "base_model_name": "second"})


async def serves_both(server: Server, here: Path) -> None:
    async with client_at(server.address) as client:
        cards = {card["id"]: card for card in (await client.get("/v1/models")).json()["data"]}
    assert list(cards) == ["first", "second", "one", "two"]
    assert [(cards[name]["root"], cards[name]["parent"]) for name in ("one", "two")] == [
        (str(here), "first"),
        (str(here), "second"),
    ]
    for path in (COMPLETIONS, CHAT):
        for name in ("one", "two"):
            status, body = await server.ask(path, model=name, max_tokens=3)
            assert (status, body["model"]) == (200, name)
    texts = [(await server.ask(COMPLETIONS, model=name, max_tokens=9))[1]["choices"] for name in ("first", "one")]
    assert texts[0] != texts[1]


NAMES = ("--served-model-name", "first", "second")


async def test_case_61_modules_are_there_before_the_first_request(programs: Programs, here: Path) -> None:
    """With the mock engine, an engine that comes, and one that is started here."""
    words = (*NAMES, "--lora-modules", *modules(here))
    env = {"PYTHONPATH": vllm_serve.install(here.parent)}
    managed = ("--pid-file", str(here.parent / "pid"), *programs.engine_flags)
    servers = [
        programs.serve("--engine", "mock", *words),
        programs.external(*words)[0],
        programs.serve(programs.model, "--enable-lora", *managed, *words, env=env),
    ]
    for server in servers:
        await server.ready()
        await serves_both(server, here)
        await server.stops()


async def test_case_61_a_bad_path_stops_the_start(programs: Programs, here: Path) -> None:
    bad = ("--lora-modules", f"good={here}", f"bad={here}/gone")
    mock = programs.serve("--engine", "mock", *bad)
    external, engine = programs.external(*bad)
    complaint = rf"northbound: error: --lora-modules: bad={here}/gone: There is no adapter at the path."
    for server in (mock, external):
        assert await ends(server) == 1
        said = log_of(server).splitlines()
        assert (said[-2:], "serving" in log_of(server)) == (
            [f"INFO    loaded adapter good from {here}", complaint],
            False,
        )
    engine.send(signal.SIGTERM)


async def test_a_name_that_is_taken_stops_the_start(programs: Programs, here: Path) -> None:
    quiet = ("--engine", "mock", "--log-level", "error", "--lora-modules")
    twice = programs.serve(*quiet, f"one={here}", f"one={here}")
    the_models = programs.serve(*quiet, f"mock={here}")
    await is_refused(twice, f"--lora-modules: one={here}: The adapter `one` is loaded already; .*")
    await is_refused(the_models, rf"--lora-modules: mock={here}: `mock` is a name of the model itself\.")


async def test_a_server_stops_while_the_engine_loads_an_adapter(programs: Programs) -> None:
    door = free_port()
    server = programs.serve_external(door, "--lora-modules", "a=org/a")
    await says(server, "waiting for engines")
    async with ScriptedEngineCore() as core:
        await core.start(f"tcp://127.0.0.1:{door}")
        await core.next_call()
        await server.stops(signal.SIGTERM)


@asynccontextmanager
async def loading(seconds: float) -> AsyncIterator[tuple[ScriptedEngineCore, "asyncio.Task[None]"]]:
    """An engine that is to load a module."""
    async with ScriptedEngineCore() as core, connected(core) as engine:
        modules = [LoraModule(name="a", path="org/a")]
        yield core, asyncio.create_task(load_modules(LoraAdapters(engine, ["m"]), modules, seconds))


async def test_what_an_engine_says_of_a_module_is_told() -> None:
    async with loading(PATIENCE_S) as (core, task):
        await core.reply(await core.next_call(), "Call to add_lora method failed: LoRA is\n not enabled.")
        with pytest.raises(ModuleNotLoaded, match=r"^--lora-modules: a=org/a: LoRA is not enabled\.$"):
            await soon(task)


async def test_an_engine_that_dies_over_a_module() -> None:
    async with loading(PATIENCE_S) as (core, task):
        await core.next_call()
        core.disconnect()
        with pytest.raises(ModuleNotLoaded, match=r"^--lora-modules: a=org/a: The engine died: engine 0 closed its "):
            await soon(task)


async def test_an_engine_that_does_not_answer_is_not_waited_for_forever() -> None:
    async with loading(0.1) as (_, task):
        with pytest.raises(ModuleNotLoaded, match=r"^--lora-modules: a was not loaded within 0\.1 s$"):
            await soon(task)


async def test_a_load_under_way_does_not_hold_up_the_end(programs: Programs) -> None:
    """Its client is told."""
    door = free_port()
    words = ("--data-parallel-size-local", "0", "--data-parallel-rpc-port", str(door))
    server = programs.serve(programs.model, *words, env={"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"})
    await says(server, "waiting for engines")
    async with ScriptedEngineCore() as core:
        await core.start(f"tcp://127.0.0.1:{door}")
        await server.ready()
        async with client_at(server.address) as client:
            body = {"lora_name": "a", "lora_path": "org/a"}
            loading = asyncio.create_task(client.post("/v1/load_lora_adapter", json=body))
            await core.next_call()
            await server.stops(signal.SIGTERM)
            assert (await loading).status_code == 503
