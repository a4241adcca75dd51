"""What request headers say of scheduling reaches the engine."""

from typing import Any

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import GenerationRequest
from tests.http.answers import error_of
from tests.http.serving import application, by_endpoint, post, question


async def told(path: str, fields: dict[str, Any], **headers: str) -> GenerationRequest:
    """What the engine is asked for a request with these fields and headers."""
    engine = ScriptedEngine(steps(104))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    assert (await post(application(engine), path, question(path, **fields), **named)).status_code == 200
    return engine.submitted[0]


@by_endpoint
@pytest.mark.parametrize(
    ("fields", "session_id"),
    [
        ({}, "header"),
        ({"session_id": "body"}, "body"),
        ({"session_id": ""}, "header"),
        ({"vllm_xargs": {"session_id": "xargs"}}, "header"),
    ],
    ids=str,
)
async def test_a_session_of_the_body_wins_over_the_header_s(path: str, fields: dict[str, Any], session_id: str) -> None:
    assert (await told(path, fields, X_Session_ID="header")).session_id == session_id
    assert (await told(path, {"vllm_xargs": {"session_id": "xargs"}}, X_Session_ID="")).session_id == "xargs"


@by_endpoint
@pytest.mark.parametrize(
    ("header", "priority"), [("-3", -3), ("0", 0), ("high", 7), ("", 7), ("1.5", 7), ("9" * 30, 2**63 - 1)]
)
async def test_a_priority_of_the_header_wins_over_the_body_s_if_it_is_one(
    path: str, header: str, priority: int
) -> None:
    assert (await told(path, {"priority": 7}, X_Vllm_Priority=header)).priority == priority


@by_endpoint
@pytest.mark.parametrize(("header", "rank"), [("0", 0), ("first", None), ("", None)])
async def test_a_rank_is_passed_on_if_it_is_one(path: str, header: str, rank: int | None) -> None:
    assert (await told(path, {}, X_data_parallel_rank=header)).data_parallel_rank == rank


@by_endpoint
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("rank", ["1", "-1", "99999999999999999999", "9" * 4000])
async def test_a_rank_that_no_engine_has_is_refused(path: str, rank: str, stream: bool) -> None:
    engine = ScriptedEngine(steps(104))
    asked = question(path, stream=stream)
    error = error_of(await post(application(engine), path, asked, **{"x-data-parallel-rank": rank}), 400)
    assert error["param"] == "data_parallel_rank"
    assert len(error["message"]) < 100
    assert not engine.running


@by_endpoint
async def test_an_id_is_not_longer_than_is_good_for_every_chunk(path: str) -> None:
    app = application(ScriptedEngine(steps(104)))
    for fields, headers in (({"request_id": "x" * 1025}, {}), ({"request_id": "y"}, {"x-request-id": "x" * 1025})):
        error = error_of(await post(app, path, question(path, **fields), **headers), 400)
        assert error["param"] == "request_id"
    assert (await post(app, path, question(path, request_id="x" * 1024))).json()["id"].endswith("x" * 1024)
