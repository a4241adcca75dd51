"""`usage`: in a stream only where it is asked for, and the same count everywhere."""

from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import FinishReason, TokenDelta
from tests.http.answers import answer, chunks
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, counted, get, post, question

PROMPT_TOKENS = {CHAT: 4, COMPLETIONS: 2}


@pytest.fixture
def app() -> Litestar:
    """Seven tokens in three steps; the last one, the end token, adds no text."""
    return application(ScriptedEngine(steps(1, 2, 3, 4, 5, 6, 257, tokens_per_step=3, finish_reason=FinishReason.STOP)))


def expected(path: str, completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": PROMPT_TOKENS[path],
        "total_tokens": PROMPT_TOKENS[path] + completion_tokens,
        "completion_tokens": completion_tokens,
    }


@by_endpoint
@pytest.mark.parametrize(
    "options",
    [
        None,
        {},
        {"include_usage": None},
        {"include_usage": False},
        {"include_usage": False, "continuous_usage_stats": True},
        {"continuous_usage_stats": True},
        {"nobody_knows": 1},
    ],
    ids=str,
)
async def test_not_asked_for(app: Litestar, path: str, options: dict[str, Any] | None) -> None:
    absent: dict[str, Any] = {}
    for fields in (absent, {"stream_options": options}):
        stream = chunks(await post(app, path, question(path, stream=True) | fields))
        assert not any("usage" in chunk for chunk in stream)
        assert all(chunk["choices"] for chunk in stream)


@by_endpoint
@pytest.mark.parametrize(
    "continuous", [{}, {"continuous_usage_stats": False}, {"continuous_usage_stats": None}], ids=str
)
async def test_include_usage(app: Litestar, path: str, continuous: dict[str, Any]) -> None:
    options = {"include_usage": True, **continuous}
    *before, last = chunks(await post(app, path, question(path, stream=True, stream_options=options)))
    assert not any("usage" in chunk for chunk in before)
    assert all(chunk["choices"] for chunk in before)
    assert (last["choices"], last["usage"]) == ([], expected(path, 7))


@by_endpoint
async def test_continuous(app: Litestar, path: str) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    stream = chunks(await post(app, path, question(path, stream=True, stream_options=options)))
    counts = [chunk["usage"]["completion_tokens"] for chunk in stream]
    assert counts == ([0, 3, 6, 7, 7] if path == CHAT else [3, 6, 7, 7])
    for chunk, count in zip(stream, counts, strict=True):
        usage = chunk["usage"]
        usage.pop("completion_tokens_details", None)
        assert usage == expected(path, count)


@by_endpoint
async def test_whole(app: Litestar, path: str) -> None:
    assert answer(await post(app, path, question(path))).usage == expected(path, 7)
    body = (await post(app, path, question(path))).json()
    assert body["usage"] == expected(path, 7) | {"prompt_tokens_details": None, "completion_tokens_details": None}


@by_endpoint
@pytest.mark.parametrize(
    "stream", [{}, {"stream": True, "stream_options": {"include_usage": True}}], ids=["whole", "stream"]
)
async def test_what_is_cut_by_a_stop_string_is_not_counted(path: str, stream: dict[str, Any]) -> None:
    app = application(ScriptedEngine(steps(*b"one two three", tokens_per_step=4)))
    shown = answer(await post(app, path, question(path, stop=["two"], **stream)))
    assert (shown.text, shown.usage) == ("one ", expected(path, len("one two")))


@by_endpoint
async def test_what_is_counted_for_the_operator(app: Litestar, path: str) -> None:
    for stream in (False, True):
        await post(app, path, question(path, stream=stream))
    assert await counted(app) == {"stop": 2}
    assert await counted(app, "vllm:prompt_tokens_total") == {"": 2 * PROMPT_TOKENS[path]}
    assert await counted(app, "vllm:generation_tokens_total") == {"": 14}
    assert await counted(app, "vllm:num_requests_running") == {}


async def test_metrics_are_prometheus_text() -> None:
    app = application(ScriptedEngine([TokenDelta([1])]))
    response = await get(app, "/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for reason in ("stop", "length", "abort", "error", "repetition"):
        assert (
            f'vllm:request_success_total{{engine="0",finished_reason="{reason}",model_name="m"}} 0.0' in response.text
        )
