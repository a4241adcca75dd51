"""Reported cases about counts, and about prompts of no or too many tokens. See test_cases."""

from typing import Any

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import FinishReason, TokenDelta
from tests.http.answers import chunks, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question
from tests.http.test_cases import STREAMED


@by_endpoint
@pytest.mark.parametrize("options", [{}, None, {"include_usage": False}], ids=str)
async def test_case_44_no_usage_unless_it_is_asked_for(path: str, options: dict[str, Any] | None) -> None:
    asked = question(path, stream=True, stream_options=options)
    stream = chunks(await post(application(ScriptedEngine(steps(104, 105))), path, asked))
    assert all(chunk["choices"] for chunk in stream)
    assert not any(chunk.get("usage") for chunk in stream)


@by_endpoint
async def test_case_44_one_chunk_of_usage_at_the_end(path: str) -> None:
    asked = question(path, stream=True, stream_options={"include_usage": True})
    *before, last = chunks(await post(application(ScriptedEngine(steps(104, 105))), path, asked))
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 2
    assert all(chunk["choices"] and not chunk.get("usage") for chunk in before)


@by_endpoint
async def test_case_45_counts_of_each_choice_never_fall_and_end_at_the_total(path: str) -> None:
    def script(*sizes: int) -> list[TokenDelta]:
        *before, last = [TokenDelta([104] * size) for size in sizes]
        return [*before, TokenDelta(last.token_ids, finish_reason=FinishReason.LENGTH)]

    def server() -> ScriptedEngine:
        return ScriptedEngine(script(1, 3, 2), script(2, 1, 3, 1))

    options = {"include_usage": True, "continuous_usage_stats": True}
    stream = chunks(await post(application(server()), path, question(path, n=2, stream=True, stream_options=options)))
    whole = (await post(application(server()), path, question(path, n=2))).json()["usage"]

    *chunks_of_choices, last = stream
    running: dict[int, list[int]] = {0: [], 1: []}
    for chunk in chunks_of_choices:
        running[chunk["choices"][0]["index"]].append(chunk["usage"]["completion_tokens"])
    assert all(counts == sorted(counts) for counts in running.values())
    assert [counts[-1] for counts in running.values()] == [6, 7]
    assert last["choices"] == []
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert last["usage"][name] == whole[name]
    assert whole["completion_tokens"] == 13


@STREAMED
@pytest.mark.parametrize("prompt", [[], [[]], [[97], []]], ids=str)
async def test_case_47_a_prompt_of_no_tokens(prompt: Any, stream: bool) -> None:
    engine = ScriptedEngine(steps(104))
    asked = {"prompt": prompt, "stream": stream}
    assert error_of(await post(application(engine), COMPLETIONS, asked), 400)["param"] == "prompt"
    assert not engine.submitted


@by_endpoint
@STREAMED
async def test_case_47_a_prompt_of_too_many_tokens(path: str, stream: bool) -> None:
    engine = ScriptedEngine(steps(104), max_model_len=20)
    text = "a" * 21
    asked = question(path, text, stream=stream)
    fields = (
        [asked] if path == CHAT else [asked, {**asked, "prompt": [97] * 21}, {**asked, "prompt": [[97], [97] * 21]}]
    )
    for body in fields:
        error = error_of(await post(application(engine), path, body), 400)
        assert error["param"] == ("messages" if path == CHAT else "prompt")
        assert "20 tokens" in error["message"]
        assert f"{23 if path == CHAT else 21} tokens" in error["message"]
    assert not engine.submitted
