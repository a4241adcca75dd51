"""`n`: as many choices per prompt, each a request of its own to the engine."""

import asyncio
from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step, steps
from domain.errors import EngineFailure
from domain.generation import FinishReason, TokenDelta
from tests.http.answers import answers, chunks, error_of, frames
from tests.http.exchange import Exchange
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, counted, post, question, with_logprobs
from tests.http.test_several_prompts import behind

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
USAGE = {"stream": True, "stream_options": {"include_usage": True}}
CONTINUOUS = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}


def three() -> Litestar:
    """Answers `h`, `ij` and `klm`, in one, two and two steps."""
    return application(
        ScriptedEngine(
            steps(*b"h", alternatives=b"~"),
            steps(*b"ij", alternatives=b"~"),
            steps(*b"klm", alternatives=b"~", tokens_per_step=2, finish_reason=FinishReason.STOP, stop_reason=109),
        )
    )


@by_endpoint
@STREAMED
async def test_each_is_a_choice(path: str, stream: bool) -> None:
    fields = with_logprobs(path, 1) | {"return_token_ids": True}
    found = answers(await post(three(), path, question(path, n=3, stream=stream, **fields)))
    assert [(one.text, one.finish_reason, one.stop_reason) for one in found] == [
        ("h", "length", None),
        ("ij", "length", None),
        ("kl", "stop", 109),
    ]
    assert [one.tokens for one in found] == [list("h"), list("ij"), list("klm")]
    assert [one.token_ids for one in found] == [list(b"h"), list(b"ij"), list(b"klm")]
    assert len({tuple(one.prompt_token_ids or ()) for one in found}) == 1


@by_endpoint
async def test_usage_counts_the_prompt_once(path: str) -> None:
    prompt_tokens = 2 if path == COMPLETIONS else 4
    expected = {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens + 6, "completion_tokens": 6}
    for fields in ({}, USAGE, CONTINUOUS):
        found = answers(await post(three(), path, question(path, "hi", n=3, **fields)))
        assert [one.usage for one in found] == [expected] * 3


async def test_usage_counts_each_prompt_once() -> None:
    app = application(ScriptedEngine(steps(104)))
    for fields in ({}, USAGE, CONTINUOUS):
        found = answers(await post(app, COMPLETIONS, {"prompt": ["ab", "cde"], "n": 3} | fields))
        assert [one.usage for one in found] == [{"prompt_tokens": 5, "total_tokens": 11, "completion_tokens": 6}] * 6


@by_endpoint
async def test_continuous_usage_is_of_each_choice(path: str) -> None:
    stream = chunks(await post(three(), path, question(path, "hi", n=3, **CONTINUOUS)))
    prompt_tokens = 2 if path == COMPLETIONS else 4
    told: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for chunk in stream[:-1]:
        assert chunk["usage"]["prompt_tokens"] == prompt_tokens
        told[chunk["choices"][0]["index"]].append(chunk["usage"]["completion_tokens"])
    before = [0] if path == CHAT else []
    assert told == {0: [*before, 1], 1: [*before, 1, 2], 2: [*before, 2, 3]}


@STREAMED
async def test_the_choices_of_a_prompt_stand_together(stream: bool) -> None:
    letters = [steps(letter) for letter in b"abcdef"]
    app = application(ScriptedEngine(*letters))
    body = {"prompt": ["one", "four"], "n": 3, "echo": True, "stream": stream}
    found = answers(await post(app, COMPLETIONS, body))
    assert [one.text for one in found] == ["onea", "oneb", "onec", "fourd", "foure", "fourf"]


@STREAMED
@pytest.mark.parametrize("prompt", ["ab", [97, 98]], ids=["text", "ids"])
async def test_each_is_echoed_with_its_own_rows(prompt: str | list[int], stream: bool) -> None:
    app = application(ScriptedEngine(behind(prompt, *b"h"), behind(prompt, *b"ij")))
    body = {"prompt": prompt, "n": 2, "echo": True, "logprobs": 1, "stream": stream}
    found = answers(await post(app, COMPLETIONS, body))
    assert [one.text for one in found] == ["abh", "abij"]
    assert [one.logprobs and one.logprobs["text_offset"] for one in found] == [[0, 1, 2], [0, 1, 2, 3]]
    assert [one.logprobs and one.logprobs["token_logprobs"] for one in found] == [
        [None, -0.5, -0.25],
        [None, -0.5, -0.25, -0.25],
    ]


@STREAMED
async def test_nothing_but_the_prompt(stream: bool) -> None:
    app = application(ScriptedEngine(steps(104)))
    body = {"prompt": "ab", "n": 2, "echo": True, "max_tokens": 0, "stream": stream}
    found = answers(await post(app, COMPLETIONS, body))
    assert [(one.text, one.finish_reason) for one in found] == [("ab", "length")] * 2


async def test_roles_come_before_anything_else() -> None:
    stream = chunks(await post(three(), CHAT, question(CHAT, n=3, stream=True, return_token_ids=True)))
    roles, others = stream[:3], stream[3:]
    assert [chunk["choices"][0]["index"] for chunk in roles] == [0, 1, 2]
    for chunk in roles:
        assert chunk["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert chunk["prompt_token_ids"] == [258, 104, 105, 259]
    assert all("role" not in chunk["choices"][0]["delta"] for chunk in others)
    assert len(others) == 5


@by_endpoint
async def test_choices_are_sent_as_the_engine_brings_them(path: str) -> None:
    go_on = asyncio.Event()
    slow: list[Step] = [TokenDelta([104]), go_on, TokenDelta([105])]
    app = application(ScriptedEngine(slow, steps(106, 107)))
    exchange = Exchange(app, path, question(path, n=2, stream=True))
    await exchange.until_received(b'"k"')
    assert b'"i"' not in exchange.received
    go_on.set()
    await exchange.until(lambda exchange: exchange.complete)
    await exchange.end()
    assert exchange.received.endswith(b"data: [DONE]\n\n")


class TestWhatReachesTheEngine:
    async def test_ids_and_seeds(self) -> None:
        engine = ScriptedEngine(steps(104))
        body = {"prompt": ["a", "b"], "n": 2, "seed": 7, "request_id": "x"}
        await post(application(engine), COMPLETIONS, body)
        assert [(one.request_id, one.sampling.seed) for one in engine.submitted] == [
            ("0_cmpl-x-0", 7),
            ("1_cmpl-x-0", 8),
            ("0_cmpl-x-1", 7),
            ("1_cmpl-x-1", 8),
        ]

    async def test_of_a_conversation(self) -> None:
        engine = ScriptedEngine(steps(104))
        await post(application(engine), CHAT, question(CHAT, n=2, request_id="x"))
        assert [(one.request_id, one.sampling.seed) for one in engine.submitted] == [
            ("0_chatcmpl-x", None),
            ("1_chatcmpl-x", None),
        ]

    @by_endpoint
    async def test_one_choice_has_the_id_alone(self, path: str) -> None:
        for n in (None, 1):
            engine = ScriptedEngine(steps(104))
            await post(application(engine), path, question(path, n=n, request_id="x", seed=7))
            [request] = engine.submitted
            assert (request.request_id, request.sampling.seed) == ("chatcmpl-x" if path == CHAT else "cmpl-x-0", 7)

    @by_endpoint
    async def test_no_seed_is_none_for_each(self, path: str) -> None:
        engine = ScriptedEngine(steps(104))
        await post(application(engine), path, question(path, n=3, seed=-1))
        assert [one.sampling.seed for one in engine.submitted] == [None] * 3


class TestRefused:
    @by_endpoint
    @STREAMED
    @pytest.mark.parametrize("n", [0, -1, 16385, 2**63 - 1])
    async def test_numbers(self, path: str, stream: bool, n: int) -> None:
        engine = ScriptedEngine(steps(104))
        error = error_of(await post(application(engine), path, question(path, n=n, stream=stream)), 400)
        assert error["param"] == "n"
        assert "16384" in error["message"]
        assert not engine.submitted

    @pytest.mark.parametrize(("prompts", "n", "status"), [(4, 4096, 200), (4, 4097, 400), (1024, 16384, 400)])
    async def test_too_many_in_all(self, prompts: int, n: int, status: int) -> None:
        engine = ScriptedEngine(steps(104))
        response = await post(application(engine), COMPLETIONS, {"prompt": ["x"] * prompts, "n": n})
        assert response.status_code == status
        if status == 400:
            assert error_of(response, 400)["param"] == "n"
            assert not engine.submitted

    @by_endpoint
    @STREAMED
    @pytest.mark.parametrize("temperature", [0])
    async def test_choices_that_would_be_the_same(self, path: str, stream: bool, temperature: float) -> None:
        engine = ScriptedEngine(steps(104))
        body = question(path, n=2, temperature=temperature, stream=stream)
        error = error_of(await post(application(engine), path, body), 400)
        assert error["param"] == "n"
        assert "greedy" in error["message"]
        assert not engine.submitted

    @by_endpoint
    async def test_one_greedy_choice_is_fine(self, path: str) -> None:
        app = application(ScriptedEngine(steps(104)))
        assert len(answers(await post(app, path, question(path, n=1, temperature=0)))) == 1
        assert len(answers(await post(app, path, question(path, n=2, temperature=1e-5)))) == 2


class TestEnds:
    @by_endpoint
    @STREAMED
    async def test_a_client_that_leaves_means_one_abort_for_each(self, path: str, stream: bool) -> None:
        script: list[Step] = [TokenDelta([104])] * 2
        engine = ScriptedEngine([*script, asyncio.Event()])
        app = application(engine)
        exchange = Exchange(app, path, question(path, n=4, stream=stream, request_id="x"))
        for _ in range(4):
            await engine.next_submitted()
        if stream:
            await exchange.until(lambda exchange: exchange.received.count(b"data: ") >= 4)
        exchange.leave()
        async with asyncio.timeout(1.0):
            ids = [await engine.next_aborted() for _ in range(4)]
        await exchange.end()
        name = "chatcmpl-x" if path == CHAT else "cmpl-x-0"
        assert sorted(ids) == [f"{index}_{name}" for index in range(4)]
        assert len(engine.aborted) == 4
        assert engine.running == 0
        assert await counted(app) == {"abort": 4}

    @by_endpoint
    @STREAMED
    async def test_one_that_fails_before_the_first_output_of_any(self, path: str, stream: bool) -> None:
        waiting: list[Step] = [asyncio.Event()]
        engine = ScriptedEngine(waiting, [EngineFailure("It broke.")])
        error_of(await post(application(engine), path, question(path, n=2, stream=stream)), 500, "InternalServerError")
        assert engine.running == 0

    @by_endpoint
    async def test_one_that_fails_later(self, path: str) -> None:
        waiting: list[Step] = [TokenDelta([104]), asyncio.Event()]
        engine = ScriptedEngine(waiting, [TokenDelta([105]), EngineFailure("It broke.")])
        app = application(engine)
        response = await post(app, path, question(path, n=2, stream=True))
        *_, error, done = frames(response)
        assert b"It broke." in error
        assert done == b"data: [DONE]"
        assert len(engine.aborted) == 1
        assert engine.running == 0
        assert await counted(app) == {"abort": 1, "error": 1}

    @by_endpoint
    @STREAMED
    async def test_one_that_is_not_admitted(self, path: str, stream: bool) -> None:
        waiting: list[Step] = [asyncio.Event()]
        engine = ScriptedEngine(waiting, EngineFailure("No room."))
        body: dict[str, Any] = question(path, n=2, stream=stream)
        error_of(await post(application(engine), path, body), 500, "InternalServerError")
        assert len(engine.aborted) == 1
        assert engine.running == 0
