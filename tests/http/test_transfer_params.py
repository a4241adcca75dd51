"""What an engine says of the caches it leaves behind comes back with a whole answer."""

from typing import Any

import pytest
from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from adapters.outbound.vllm_engine.stream import merged
from domain.generation import TokenDelta, TransferParams
from tests.http.answers import chunks
from tests.http.serving import COMPLETIONS, application, by_endpoint, post, question

KV = {"do_remote_prefill": True, "remote_block_ids": [[1, 2]], "remote_host": None, "remote_port": 5}
EC = {"x": {"y": 0.5}}


def leaving(transfer: TransferParams | None, *token_ids: int) -> list[TokenDelta]:
    """An answer that ends with it."""
    *deltas, last = steps(*token_ids)
    return [*deltas, replace(last, transfer=transfer)]


async def left(engine: ScriptedEngine, path: str, **fields: Any) -> tuple[Any, Any]:
    response = await post(application(engine), path, question(path, **fields))
    assert response.status_code == 200
    body = response.json()
    return body["kv_transfer_params"], body["ec_transfer_params"]


@by_endpoint
@pytest.mark.parametrize("transfer", [TransferParams(KV, EC), TransferParams(KV), TransferParams(None, EC)], ids=str)
async def test_as_the_engine_says_it(path: str, transfer: TransferParams) -> None:
    assert await left(ScriptedEngine(leaving(transfer, 104, 105)), path) == (transfer.kv, transfer.ec)


@by_endpoint
async def test_nothing_said(path: str) -> None:
    assert await left(ScriptedEngine(leaving(None, 104)), path) == (None, None)


@by_endpoint
async def test_the_last_word_counts(path: str) -> None:
    first, second, third = steps(104, 105, 106)
    script = [
        replace(first, transfer=TransferParams({"said": 1})),
        replace(second, transfer=TransferParams({"said": 2})),
        third,
    ]
    assert await left(ScriptedEngine(script), path) == ({"said": 2}, None)


async def test_steps_that_come_merged() -> None:
    first, second, third = steps(104, 105, 106)
    said = [replace(first, transfer=TransferParams({"said": 1})), replace(second, transfer=TransferParams({"said": 2}))]
    assert merged([*said, third]).transfer == TransferParams({"said": 2})
    assert merged([first, second]).transfer is None


async def test_of_several_prompts_the_first() -> None:
    scripts = [leaving(TransferParams({"of": index}), 104) for index in range(4)]
    assert await left(ScriptedEngine(*scripts[:2]), COMPLETIONS, prompt=["a", "b"]) == ({"of": 0}, None)
    assert await left(ScriptedEngine(*scripts), COMPLETIONS, prompt=["a", "b"], n=2) == ({"of": 1}, None)
    silent = leaving(None, 104)
    assert await left(ScriptedEngine(silent, scripts[1]), COMPLETIONS, prompt=["a", "b"]) == (None, None)


@by_endpoint
async def test_of_several_choices_the_last_that_has_any(path: str) -> None:
    scripts = [leaving(TransferParams({"of": index}), 104) for index in range(2)]
    assert await left(ScriptedEngine(*scripts, leaving(None, 104)), path, n=3) == ({"of": 1}, None)


async def test_of_the_prompt_alone() -> None:
    """What the engine samples unseen brings it."""
    engine = ScriptedEngine(leaving(TransferParams(KV), 104))
    assert await left(engine, COMPLETIONS, echo=True, max_tokens=0) == (KV, None)


@by_endpoint
async def test_streams_do_not_have_it(path: str) -> None:
    app = application(ScriptedEngine(leaving(TransferParams(KV), 104)))
    for chunk in chunks(await post(app, path, question(path, stream=True))):
        assert "kv_transfer_params" not in chunk
