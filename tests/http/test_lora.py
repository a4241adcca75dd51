"""Adapters: named by requests, listed, loaded and unloaded while requests run.

The numbers of cases are those of test_cases.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from litestar import Litestar

from adapters.bootstrap.app import build_app
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.options import ServerOptions
from application.ports.engine import EngineDead, EngineUnavailable
from application.ports.lora import AdapterNotLoaded
from tests.fakes.lora import LoadingEngine
from tests.http.answers import answer, error_of
from tests.http.exchange import Exchange, eventually
from tests.http.serving import COMPLETIONS, by_endpoint, container, get, post, question, with_logprobs

LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])

Json = dict[str, Any]


@pytest.fixture
def engine() -> LoadingEngine:
    return LoadingEngine()


@pytest.fixture
def app(engine: LoadingEngine) -> Litestar:
    """Clients may load and unload."""
    return build_app(container(engine, names=("m", "n")), updates_lora=True)


@pytest.fixture
def ad1(tmp_path: Path) -> Json:
    """What loads an adapter."""
    return {"lora_name": "ad1", "lora_path": folder(tmp_path, "ad1")}


def folder(parent: Path, name: str) -> str:
    (parent / name).mkdir()
    return str(parent / name)


def succeeded(response: httpx.Response, said: str) -> None:
    assert (response.status_code, response.text) == (200, f"Success: LoRA adapter {said} successfully.")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"


async def cards(app: Litestar) -> dict[str, Json]:
    return {card["id"]: card for card in (await get(app, "/v1/models")).json()["data"]}


@by_endpoint
@STREAMED
async def test_case_60_an_adapter_just_loaded_is_listed_and_answers_by_its_name(
    app: Litestar, ad1: Json, path: str, stream: bool
) -> None:
    succeeded(await post(app, LOAD, ad1), "'ad1' added")
    listed = await cards(app)
    assert list(listed) == ["m", "n", "ad1"]
    assert (listed["ad1"]["parent"], listed["ad1"]["root"]) == ("m", ad1["lora_path"])
    assert listed["ad1"]["max_model_len"] is None
    assert listed["m"].keys() == listed["ad1"].keys()

    response = await post(app, path, question(path, model="ad1", stream=stream))
    answer(response)
    names = [json.loads(frame.removeprefix("data: ")) for frame in response.text.split("\n\n") if "{" in frame]
    assert {each["model"] for each in names} == {"ad1"}

    unknown = error_of(await post(app, path, question(path, model="nope", stream=stream)), 404, "NotFoundError")
    assert unknown["param"] == "model"
    assert "`nope`" in unknown["message"]

    succeeded(await post(app, UNLOAD, {"lora_name": "ad1"}), "'ad1' removed")
    assert list(await cards(app)) == ["m", "n"]
    error_of(await post(app, path, question(path, model="ad1", stream=stream)), 404, "NotFoundError")


@by_endpoint
async def test_the_engine_is_told_which_adapter(app: Litestar, engine: LoadingEngine, ad1: Json, path: str) -> None:
    await post(app, LOAD, ad1 | {"is_3d_lora_weight": True})
    bodies = [question(path, n=2, temperature=1.0) | asked for asked in ({"model": "ad1"}, {"model": "n"}, {})]
    texts = [answer_texts(await post(app, path, body)) for body in bodies]
    [(adapter, in_place)] = engine.loads
    assert (adapter.name, adapter.path, adapter.is_3d, in_place) == ("ad1", ad1["lora_path"], True, False)
    assert [request.adapter for request in engine.requests] == [adapter, adapter, None, None, None, None]
    assert texts[0] != texts[1] == texts[2]


def answer_texts(response: httpx.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [choice.get("text") or choice["message"]["content"] for choice in response.json()["choices"]]


@by_endpoint
@STREAMED
@pytest.mark.parametrize("flag", [False, True], ids=["flag off", "flag on"])
@pytest.mark.parametrize("field", [None, False, True])
async def test_the_rule_holds_by_an_adapter_s_name(
    engine: LoadingEngine, ad1: Json, path: str, stream: bool, flag: bool, field: bool | None
) -> None:
    options = ServerOptions(default_return_tokens_as_token_ids=flag)
    app = build_app(container(engine, options=options), updates_lora=True)
    await post(app, LOAD, ad1)
    body = question(path, model="ad1", stream=stream, return_tokens_as_token_ids=field, **with_logprobs(path, 1))
    tokens = answer(await post(app, path, body)).tokens
    shown = flag if field is None else field
    assert [token.startswith("token_id:") for token in tokens] == [shown] * len(tokens)


async def test_another_may_take_its_place(app: Litestar, engine: LoadingEngine, ad1: Json, tmp_path: Path) -> None:
    await post(app, LOAD, ad1)
    error = error_of(await post(app, LOAD, ad1), 400)
    assert error["param"] == "lora_name"
    assert "load_inplace" in error["message"]
    before = answer(await post(app, COMPLETIONS, question(COMPLETIONS, model="ad1")))

    succeeded(await post(app, LOAD, ad1 | {"lora_path": folder(tmp_path, "new"), "load_inplace": True}), "'ad1' added")
    after = answer(await post(app, COMPLETIONS, question(COMPLETIONS, model="ad1")))
    assert before.text != after.text
    assert [(adapter.id, in_place) for adapter, in_place in engine.loads] == [(1, False), (1, True)]
    assert (await cards(app))["ad1"]["root"] == f"{tmp_path}/new"


@pytest.mark.parametrize(
    ("path", "body", "status", "param"),
    [
        (LOAD, {"lora_name": "a", "lora_path": "/no/such/folder"}, 404, "lora_path"),
        (LOAD, {"lora_name": "n", "lora_path": "/"}, 400, "lora_name"),
        (LOAD, {"lora_name": "", "lora_path": "/"}, 400, "lora_name"),
        (LOAD, {"lora_name": "a", "lora_path": ""}, 400, "lora_path"),
        (LOAD, {"lora_name": "a"}, 400, "lora_path"),
        (LOAD, {"lora_path": "/"}, 400, "lora_name"),
        (LOAD, {"lora_name": 5, "lora_path": "/"}, 400, "lora_name"),
        (LOAD, {"lora_name": "a", "lora_path": None}, 400, "lora_path"),
        (LOAD, {"lora_name": "a", "lora_path": "/", "load_inplace": "true"}, 400, "load_inplace"),
        (LOAD, {"lora_name": "a", "lora_path": "/", "is_3d_lora_weight": 1}, 400, "is_3d_lora_weight"),
        (LOAD, b"{", 400, None),
        (LOAD, b"[]", 400, None),
        (UNLOAD, {"lora_name": "a"}, 404, "lora_name"),
        (UNLOAD, {"lora_name": "m"}, 404, "lora_name"),
        (UNLOAD, {"lora_name": ""}, 400, "lora_name"),
        (UNLOAD, {}, 400, "lora_name"),
        (UNLOAD, {"lora_name": "a", "lora_int_id": "1"}, 400, "lora_int_id"),
        (UNLOAD, b'{"lora_name": "\\ud83c"}', 400, None),
    ],
)
async def test_what_is_refused(app: Litestar, path: str, body: Json | bytes, status: int, param: str | None) -> None:
    error = error_of(await post(app, path, body), status, "NotFoundError" if status == 404 else "BadRequestError")
    assert error["param"] == param
    assert "/no" not in error["message"]
    assert list(await cards(app)) == ["m", "n"]


async def test_nulls_and_strangers_mean_nothing(app: Litestar, ad1: Json) -> None:
    nulls = {"load_inplace": None, "is_3d_lora_weight": None, "of_the_future": 1}
    succeeded(await post(app, LOAD, ad1 | nulls), "'ad1' added")
    succeeded(await post(app, UNLOAD, {"lora_name": "ad1", "lora_int_id": None, "of_the_future": 1}), "'ad1' removed")


@pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (AdapterNotLoaded("LoRA rank 64 is too much."), 500, "InternalServerError"),
        (EngineDead("It is gone."), 500, "InternalServerError"),
        (EngineUnavailable("The server is shutting down."), 503, "ServiceUnavailableError"),
    ],
)
async def test_what_the_engine_cannot(
    app: Litestar, engine: LoadingEngine, ad1: Json, failure: Exception, status: int, kind: str
) -> None:
    engine.failures = [failure]
    error = error_of(await post(app, LOAD, ad1), status, kind)
    assert (error["message"], error["param"]) == (str(failure), None)
    assert list(await cards(app)) == ["m", "n"]
    succeeded(await post(app, LOAD, ad1), "'ad1' added")


async def test_a_client_that_leaves_does_not_end_the_load(app: Litestar, engine: LoadingEngine, ad1: Json) -> None:
    engine.gate.clear()
    exchange = Exchange(app, LOAD, ad1)
    await eventually(lambda: bool(engine.loads))
    exchange.leave()
    error_of(await post(app, COMPLETIONS, question(COMPLETIONS, model="ad1")), 404, "NotFoundError")
    engine.gate.set()
    await exchange.end()
    assert list(await cards(app)) == ["m", "n", "ad1"]


async def test_what_runs_goes_on_when_its_adapter_is_unloaded(engine: LoadingEngine, ad1: Json) -> None:
    gate = asyncio.Event()
    scripted = ScriptedEngine([*steps(104, 105)[:1], gate, *steps(105)])
    wired = container(scripted)
    wired.lora_loader.override(engine)
    app = build_app(wired, updates_lora=True)
    await post(app, LOAD, ad1)
    exchange = Exchange(app, COMPLETIONS, question(COMPLETIONS, model="ad1", stream=True))
    await exchange.until_received(b"data: {")
    succeeded(await post(app, UNLOAD, {"lora_name": "ad1"}), "'ad1' removed")
    gate.set()
    await exchange.end()
    assert exchange.received.count(b'"model":"ad1"') == exchange.received.count(b"data: {") == 2
    assert b'"finish_reason":"length"' in exchange.received
    assert scripted.aborted == []


@pytest.mark.parametrize("path", [LOAD, UNLOAD])
async def test_without_leave_there_are_no_such_routes(engine: LoadingEngine, ad1: Json, path: str) -> None:
    app = build_app(container(engine))
    unknown = error_of(await post(app, "/v1/nowhere", ad1), 404, "NotFoundError")
    assert error_of(await post(app, path, ad1), 404, "NotFoundError") == unknown
    assert engine.loads == []


async def test_two_loads_of_one_name_at_once(app: Litestar, engine: LoadingEngine, ad1: Json) -> None:
    engine.gate.clear()
    loading = [asyncio.create_task(post(app, LOAD, ad1)) for _ in range(2)]
    await eventually(lambda: bool(engine.loads))
    engine.gate.set()
    assert [response.status_code for response in await asyncio.gather(*loading)] == [200, 400]
    assert len(engine.loads) == 1
