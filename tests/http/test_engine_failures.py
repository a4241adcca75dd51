"""What the engine cannot do: a status before the first output, an event after it (contract 8.2)."""

import asyncio
import json
from typing import Any

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step
from application.ports.engine import EngineDead, EngineUnavailable
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, TokenDelta
from tests.http.answers import answer, error_of, frames
from tests.http.serving import COMPLETIONS, application, by_endpoint, counted, get, post, question

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
FAILURES = pytest.mark.parametrize(
    ("failure", "status", "kind"),
    [
        (EngineUnavailable("Try again later."), 503, "ServiceUnavailableError"),
        (EngineFailure("It went wrong."), 500, "InternalServerError"),
        (EngineDead("It is gone."), 500, "InternalServerError"),
        (RequestError("The engine does not take this.", "seed"), 400, "BadRequestError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
H = TokenDelta([104])


@by_endpoint
@STREAMED
@FAILURES
async def test_refused_when_submitted(path: str, stream: bool, failure: Exception, status: int, kind: str) -> None:
    app = application(ScriptedEngine(failure))

    error = error_of(await post(app, path, question(path, stream=stream)), status, kind)

    assert error["message"] == str(failure)
    assert error["param"] == getattr(failure, "param", None)
    assert await counted(app) == {}
    assert await counted(app, "vllm:num_requests_running") == {}


@by_endpoint
@STREAMED
@FAILURES
async def test_failed_before_the_first_output(
    path: str, stream: bool, failure: Exception, status: int, kind: str
) -> None:
    engine = ScriptedEngine([failure])
    app = application(engine)

    error = error_of(await post(app, path, question(path, stream=stream)), status, kind)

    assert (error["message"], error["param"]) == (str(failure), getattr(failure, "param", None))
    assert engine.running == 0
    assert await counted(app) == {"error": 1}
    assert await counted(app, "vllm:num_requests_running") == {}


@by_endpoint
@FAILURES
async def test_failed_after_it_streamed(path: str, failure: Exception, status: int, kind: str) -> None:
    engine = ScriptedEngine([H, H, failure])
    app = application(engine)

    response = await post(app, path, question(path, stream=True, stream_options={"include_usage": True}))

    assert response.status_code == 200
    *before, event, done = frames(response)
    assert done == b"data: [DONE]"
    param = getattr(failure, "param", None)
    assert (
        event
        == b"data: "
        + json.dumps(
            {"error": {"message": str(failure), "type": kind, "param": param, "code": status}}, separators=(",", ":")
        ).encode()
    )
    assert not any(b"error" in frame or b'"finish_reason":"' in frame for frame in before)
    assert "".join(texts(path, before)) == "hh"
    assert engine.running == 0
    assert await counted(app) == {"error": 1}


@by_endpoint
@FAILURES
async def test_failed_after_it_whole(path: str, failure: Exception, status: int, kind: str) -> None:
    engine = ScriptedEngine([H, H, failure])
    app = application(engine)

    error_of(await post(app, path, question(path)), status, kind)

    assert engine.running == 0
    assert await counted(app) == {"error": 1}


@by_endpoint
@STREAMED
async def test_engine_that_dies_meanwhile(path: str, stream: bool) -> None:
    engine = ScriptedEngine([H, asyncio.Event()])
    app = application(engine)
    asking = asyncio.create_task(post(app, path, question(path, stream=stream)))
    await engine.next_submitted()
    assert (await get(app, "/health")).status_code == 200

    engine.die()
    response = await asking

    if stream:
        assert frames(response)[-1] == b"data: [DONE]"
        assert json.loads(frames(response)[-2].removeprefix(b"data: "))["error"]["code"] == 500
    else:
        error_of(response, 500, "InternalServerError")
    health = await get(app, "/health")
    assert (health.status_code, health.content) == (503, b"")
    error_of(await post(app, path, question(path, stream=stream)), 500, "InternalServerError")
    assert (await get(app, "/v1/models")).status_code == 200


@by_endpoint
@STREAMED
async def test_nothing_of_a_defect_reaches_the_client(
    path: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A failure in no family is this server's own: it is logged, and answered without its words."""
    scripts: list[list[Step]] = [[KeyError("/secret/path")], [H, KeyError("/secret/path")]]
    for script in scripts:
        response = await post(application(ScriptedEngine(script)), path, question(path, stream=stream))
        assert "secret" not in response.text
        assert "Internal server error" in response.text
        assert "InternalServerError" in response.text
        assert "secret" in caplog.text
        caplog.clear()


@by_endpoint
@STREAMED
async def test_failures_of_others_are_not_logged_as_defects(
    path: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await post(application(ScriptedEngine([RequestError("no")])), path, question(path, stream=stream))
    await post(application(ScriptedEngine([H])), path, b"{")
    assert "unexpected" not in caplog.text


@by_endpoint
@STREAMED
@pytest.mark.parametrize("reason", list(FinishReason))
async def test_ends_that_the_engine_gives(path: str, stream: bool, reason: FinishReason) -> None:
    """An end that brings no token is an answer like any other, and counted as what it is."""
    script: list[Step] = [H, TokenDelta((), finish_reason=reason)]
    app = application(ScriptedEngine(script))

    shown = answer(await post(app, path, question(path, stream=stream, return_token_ids=True)))

    assert (shown.text, shown.token_ids, shown.finish_reason) == ("h", [104], reason)
    assert await counted(app) == {reason: 1}


@by_endpoint
@STREAMED
@pytest.mark.parametrize("stop_reason", [None, 104, "x"])
async def test_why_it_stopped(path: str, stream: bool, stop_reason: int | str | None) -> None:
    last = TokenDelta([105], finish_reason=FinishReason.STOP, stop_reason=stop_reason)
    shown = answer(await post(application(ScriptedEngine([H, last])), path, question(path, stream=stream)))
    assert (shown.text, shown.finish_reason, shown.stop_reason) == ("h", "stop", stop_reason)


async def test_status_is_not_decided_before_the_first_output() -> None:
    """Nothing at all is sent while the engine says nothing."""
    gate = asyncio.Event()
    engine = ScriptedEngine([gate, RequestError("too late to refuse? no", "prompt")])
    sent: list[Any] = []
    app = application(engine)
    asking = asyncio.create_task(post(app, COMPLETIONS, question(COMPLETIONS, stream=True)))
    asking.add_done_callback(sent.append)
    await engine.next_submitted()
    assert not sent

    gate.set()

    assert error_of(await asking, 400)["param"] == "prompt"


def texts(path: str, found: list[bytes]) -> list[str]:
    choices = [json.loads(frame.removeprefix(b"data: "))["choices"][0] for frame in found]
    return [choice["text"] if path == COMPLETIONS else choice["delta"]["content"] for choice in choices]
