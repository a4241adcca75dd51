"""What the server's flags make an answer tell, whatever a request asks for."""

import asyncio
import re
from typing import Any

import pytest
from litestar import Litestar
from msgspec import structs

from adapters.outbound.mock_engine.scripted import ScriptedEngine
from application.options import ServerOptions
from domain.errors import EngineFailure
from domain.generation import FinishReason, TokenDelta
from domain.speculation import Speculation
from domain.timing import EngineStart
from tests.http.answers import chunks
from tests.http.exchange import Exchange
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question

PROMPT_TOKENS = {CHAT: 4, COMPLETIONS: 2}


def told(cached: int | None = 3, created: int | None = 1) -> list[TokenDelta]:
    """Two tokens, of which the first brings what the engine says of the cache."""
    return [
        TokenDelta([72], cached_tokens=cached, created_cache_tokens=created),
        TokenDelta([105], finish_reason=FinishReason.LENGTH),
    ]


def server(*scripts: list[TokenDelta], **options: Any) -> Litestar:
    return application(ScriptedEngine(*(scripts or [told()])), options=ServerOptions(**options))


class TestForcedUsage:
    @by_endpoint
    @pytest.mark.parametrize("asked", [None, {}, {"include_usage": False, "continuous_usage_stats": False}], ids=str)
    async def test_every_chunk_of_every_stream_tells_it(self, path: str, asked: dict[str, Any] | None) -> None:
        app = server(forces_usage=True)
        *before, last = chunks(await post(app, path, question(path, stream=True, stream_options=asked)))
        assert before
        assert all(chunk["choices"] and chunk["usage"]["prompt_tokens"] == PROMPT_TOKENS[path] for chunk in before)
        counts = [chunk["usage"]["completion_tokens"] for chunk in before]
        assert counts == ([0, 1, 2] if path == CHAT else [1, 2])
        assert last["choices"] == []
        assert last["usage"]["completion_tokens"] == 2

    @by_endpoint
    async def test_without_the_flag_only_what_is_asked_for_is_told(self, path: str) -> None:
        app = server(forces_usage=False)
        stream = chunks(await post(app, path, question(path, stream=True)))
        assert not any("usage" in chunk for chunk in stream)

    @by_endpoint
    async def test_it_lets_no_stream_options_in_where_nothing_is_streamed(self, path: str) -> None:
        response = await post(server(forces_usage=True), path, question(path, stream_options={"include_usage": True}))
        assert response.status_code == 400
        assert response.json()["error"]["param"] == "stream_options"


DETAILS = {
    CHAT: {"cached_tokens": 3, "created_cache_tokens": 1, "multimodal_tokens": None},
    COMPLETIONS: {"cached_tokens": 3, "created_cache_tokens": None, "multimodal_tokens": None},
}


class TestPromptDetails:
    @by_endpoint
    async def test_an_answer_tells_what_was_cached(self, path: str) -> None:
        usage = (await post(server(tells_prompt_details=True), path, question(path))).json()["usage"]
        assert list(usage["prompt_tokens_details"].items()) == list(DETAILS[path].items())

    @by_endpoint
    async def test_a_stream_tells_it_at_its_end_without_nulls(self, path: str) -> None:
        options = {"include_usage": True, "continuous_usage_stats": True}
        app = server(tells_prompt_details=True)
        *before, last = chunks(await post(app, path, question(path, stream=True, stream_options=options)))
        assert not any("prompt_tokens_details" in chunk["usage"] for chunk in before)
        expected = {name: count for name, count in DETAILS[path].items() if count is not None}
        assert last["usage"]["prompt_tokens_details"] == expected
        assert list(last["usage"]) == ["prompt_tokens", "total_tokens", "completion_tokens", "prompt_tokens_details"]

    @by_endpoint
    async def test_none_cached_is_told_and_unknown_is_not(self, path: str) -> None:
        none = await post(server(told(0, 0), tells_prompt_details=True), path, question(path))
        assert none.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        for stream in (False, True):
            app = server(told(None, None), tells_prompt_details=True)
            options = {"include_usage": True} if stream else None
            response = await post(app, path, question(path, stream=stream, stream_options=options))
            usage = chunks(response)[-1]["usage"] if stream else response.json()["usage"]
            assert usage.get("prompt_tokens_details") is None
            assert ("prompt_tokens_details" in usage) is not stream

    @by_endpoint
    async def test_without_the_flag_it_is_null(self, path: str) -> None:
        usage = (await post(server(), path, question(path))).json()["usage"]
        assert usage["prompt_tokens_details"] is None
        stream = await post(server(), path, question(path, stream=True, stream_options={"include_usage": True}))
        assert "prompt_tokens_details" not in chunks(stream)[-1]["usage"]

    async def test_several_prompts_sum_up_and_several_choices_of_one_do_not(self) -> None:
        scripts = [told(3), told(3), told(5), told(5)]
        app = server(*scripts, tells_prompt_details=True)
        usage = (await post(app, COMPLETIONS, question(COMPLETIONS, prompt=["a", "b"], n=2))).json()["usage"]
        assert usage["prompt_tokens_details"]["cached_tokens"] == 8


class TestFingerprint:
    @by_endpoint
    async def test_by_default_it_is_version_and_hash_and_the_same_each_time(self, path: str) -> None:
        engine = ScriptedEngine(told(), version="0.32.0")
        first, second = [
            (await post(application(engine), path, question(path))).json()["system_fingerprint"] for _ in range(2)
        ]
        assert first == second
        assert re.fullmatch(r"vllm-0\.32\.0-[0-9a-f]{8}", first)

    async def test_what_is_served_makes_it_another(self) -> None:
        async def fingerprint(**differently: Any) -> str:
            engine = ScriptedEngine(told(), max_model_len=differently.pop("max_model_len", 100))
            answer = await post(application(engine, **differently), CHAT, question(CHAT))
            return str(answer.json()["system_fingerprint"])

        assert len({await fingerprint(), await fingerprint(names=["n"]), await fingerprint(max_model_len=50)}) == 3

    @by_endpoint
    @pytest.mark.parametrize(
        ("options", "fingerprint"),
        [
            ({"fingerprint_mode": "custom", "fingerprint_value": 'mine "1"'}, 'mine "1"'),
            ({"fingerprint_mode": "custom"}, None),
            ({"fingerprint_mode": "none", "fingerprint_value": "f"}, None),
        ],
        ids=str,
    )
    async def test_other_modes(self, path: str, options: dict[str, Any], fingerprint: str | None) -> None:
        app = server(**options)
        assert (await post(app, path, question(path))).json()["system_fingerprint"] == fingerprint
        for usage in (False, True):
            asked = question(path, stream=True, stream_options={"include_usage": usage})
            *before, last = chunks(await post(app, path, asked))
            assert not any("system_fingerprint" in chunk for chunk in before)
            assert last.get("system_fingerprint") == fingerprint
            assert ("system_fingerprint" in last) is (fingerprint is not None)

    @by_endpoint
    async def test_a_hash_alone_has_the_same_form(self, path: str) -> None:
        fingerprint = (await post(server(fingerprint_mode="hash"), path, question(path))).json()["system_fingerprint"]
        assert re.fullmatch(r"vllm-scripted-[0-9a-f]{8}", fingerprint)

    @by_endpoint
    async def test_each_choice_of_a_stream_ends_with_it(self, path: str) -> None:
        app = server(told(), told(), fingerprint_mode="custom", fingerprint_value="f")
        stream = chunks(await post(app, path, question(path, stream=True, n=2)))
        with_it = [chunk["choices"][0]["finish_reason"] for chunk in stream if "system_fingerprint" in chunk]
        assert with_it == ["length", "length"]


class TestStreamInterval:
    @by_endpoint
    @pytest.mark.parametrize(
        ("server_s", "request_s", "counts"),
        [(3, None, [1, 3, 1]), (3, 2, [1, 3, 1]), (2, 3, [1, 3, 1]), (1, None, [1] * 5)],
    )
    async def test_the_longer_one_holds(
        self, path: str, server_s: int, request_s: int | None, counts: list[int]
    ) -> None:
        script = [TokenDelta([97]) for _ in range(4)] + [TokenDelta([98], finish_reason=FinishReason.LENGTH)]
        app = server(script, stream_interval=server_s)
        asked = question(path, stream=True, stream_interval=request_s, return_token_ids=True)
        choices = [choice for chunk in chunks(await post(app, path, asked)) for choice in chunk["choices"]]
        assert [len(choice["token_ids"]) for choice in choices if "token_ids" in choice] == counts


TIMED = [
    TokenDelta([72], start=EngineStart(10.0, 10.5, 10.75), produced_at=10.75),
    TokenDelta([105], produced_at=11.0),
    TokenDelta([33], finish_reason=FinishReason.LENGTH, produced_at=11.25),
]
"""Queued half a second, and a token each quarter of one from then on."""

METRICS = {
    "time_to_first_token_ms": 250.0,
    "generation_time_ms": 500.0,
    "queue_time_ms": 500.0,
    "mean_itl_ms": 250.0,
    "tokens_per_second": 4.0,
    "speculative_decoding": None,
}


class TestMetrics:
    @by_endpoint
    async def test_an_answer_tells_how_long_it_took(self, path: str) -> None:
        answer = (await post(server(TIMED, tells_timing=True), path, question(path))).json()
        assert list(answer["metrics"].items()) == list(METRICS.items())

    @by_endpoint
    async def test_a_stream_tells_it_with_its_usage(self, path: str) -> None:
        app = server(TIMED, tells_timing=True)
        stream = chunks(await post(app, path, question(path, stream=True, stream_options={"include_usage": True})))
        *before, last = stream
        assert last["metrics"] == {name: value for name, value in METRICS.items() if value is not None}
        assert list(last)[-2:] == ["system_fingerprint", "metrics"]
        assert not any("metrics" in chunk for chunk in before)
        without_usage = chunks(await post(app, path, question(path, stream=True)))
        assert not any("metrics" in chunk for chunk in without_usage)

    @by_endpoint
    async def test_what_depends_on_a_time_that_is_not_known_is_null(self, path: str) -> None:
        one = [TokenDelta([72], finish_reason=FinishReason.LENGTH, start=EngineStart(None, 1.0, 2.0), produced_at=2.0)]
        metrics = (await post(server(one, tells_timing=True), path, question(path))).json()["metrics"]
        assert metrics == {
            "time_to_first_token_ms": 1000.0,
            "generation_time_ms": 0.0,
            "queue_time_ms": None,
            "mean_itl_ms": None,
            "tokens_per_second": 1.0,
            "speculative_decoding": None,
        }
        unknown = (await post(server(told(), tells_timing=True), path, question(path))).json()["metrics"]
        assert unknown == dict.fromkeys(METRICS)
        options = {"include_usage": True}
        asked = question(path, stream=True, stream_options=options)
        assert chunks(await post(server(told(), tells_timing=True), path, asked))[-1]["metrics"] == {}

    @by_endpoint
    async def test_not_of_several_choices_and_not_without_the_flag(self, path: str) -> None:
        for app, fields in ((server(TIMED, tells_timing=True), {"n": 2}), (server(TIMED), {})):
            assert (await post(app, path, question(path, **fields))).json()["metrics"] is None
            asked = question(path, stream=True, stream_options={"include_usage": True}, **fields)
            assert "metrics" not in chunks(await post(app, path, asked))[-1]

    async def test_several_prompts_are_several_choices(self) -> None:
        app = server(TIMED, tells_timing=True)
        answer = await post(app, COMPLETIONS, question(COMPLETIONS, prompt=["a", "b"]))
        assert answer.json()["metrics"] is None


SPECULATION = Speculation(2, [0, 1, 2], 6)
"""Of three steps that checked two drafts each, one kept one of them, and two kept both."""
KEPT = {
    "mean_acceptance_length": 1 + 5 / 3,
    "draft_acceptance_rate": 5 / 6,
    "acceptance_histogram": [0, 1, 2],
    "num_spec_steps": 3,
    "num_accepted_draft_tokens": 5,
    "num_draft_tokens": 6,
    "num_spec_tokens": 2,
}


def drafted(speculation: Speculation = SPECULATION) -> list[TokenDelta]:
    return [*TIMED[:-1], structs.replace(TIMED[-1], speculation=speculation)]


class TestSpeculation:
    """Told whenever the engine tells, without a flag of the frontend's."""

    @by_endpoint
    async def test_an_answer_tells_how_well_drafts_were_guessed(self, path: str) -> None:
        unsaid = {"per_step_accepted": None, "per_step_drafted": None}
        alone = (await post(server(drafted()), path, question(path))).json()["metrics"]
        assert alone == {**dict.fromkeys(METRICS), "speculative_decoding": KEPT | unsaid}
        both = (await post(server(drafted(), tells_timing=True), path, question(path))).json()["metrics"]
        assert both == {**METRICS, "speculative_decoding": KEPT | unsaid}

    @by_endpoint
    async def test_a_stream_tells_it_with_its_usage(self, path: str) -> None:
        detailed = structs.replace(SPECULATION, kept_by_step=[2, 1, 2], drafted_by_step=[2, 2, 2])
        asked = question(path, stream=True, stream_options={"include_usage": True})
        *_, short = chunks(await post(server(drafted()), path, asked))
        assert short["metrics"] == {"speculative_decoding": KEPT}
        *before, last = chunks(await post(server(drafted(detailed)), path, asked))
        assert last["metrics"] == {
            "speculative_decoding": {**KEPT, "per_step_accepted": [2, 1, 2], "per_step_drafted": [2, 2, 2]}
        }
        assert not any("metrics" in chunk for chunk in before)

    @by_endpoint
    async def test_not_of_several_choices(self, path: str) -> None:
        assert (await post(server(drafted()), path, question(path, n=2))).json()["metrics"] is None

    @by_endpoint
    async def test_of_no_step_and_no_draft(self, path: str) -> None:
        none = (await post(server(drafted(Speculation(2, [0, 0, 0], 0))), path, question(path))).json()["metrics"]
        assert none["speculative_decoding"]["mean_acceptance_length"] == 1.0
        assert none["speculative_decoding"]["draft_acceptance_rate"] == 0.0


class TestKeepAlive:
    @by_endpoint
    async def test_a_silent_stream_sends_comments(self, path: str) -> None:
        goes_on = asyncio.Event()
        engine = ScriptedEngine([TokenDelta([72]), goes_on, TokenDelta([105], finish_reason=FinishReason.LENGTH)])
        exchange = Exchange(application(engine, silence_limit=0.01), path, question(path, stream=True))
        await exchange.until_received(b": keep-alive\n\n: keep-alive\n\n")
        goes_on.set()
        await exchange.end()
        events = [event for event in exchange.received.split(b"\n\n") if event]
        assert events[-1] == b"data: [DONE]"
        assert {event for event in events if not event.startswith(b"data: ")} == {b": keep-alive"}

    @by_endpoint
    async def test_one_that_is_not_is_left_alone(self, path: str) -> None:
        quiet, watched = [
            await post(application(ScriptedEngine(told()), silence_limit=limit), path, question(path, stream=True))
            for limit in (0, 60)
        ]
        assert b"keep-alive" not in watched.content
        assert len(chunks(quiet)) == len(chunks(watched))

    @by_endpoint
    async def test_a_client_that_leaves_meanwhile_leaves_no_request(self, path: str) -> None:
        engine = ScriptedEngine([TokenDelta([72]), asyncio.Event()])
        exchange = Exchange(application(engine, silence_limit=0.01), path, question(path, stream=True))
        await exchange.until_received(b": keep-alive\n\n")
        exchange.leave()
        await exchange.end()
        assert not engine.running
        assert len(engine.aborted) == 1

    @by_endpoint
    async def test_a_failure_ends_it_as_ever(self, path: str) -> None:
        engine = ScriptedEngine([TokenDelta([72]), EngineFailure("lost")])
        response = await post(application(engine, silence_limit=60), path, question(path, stream=True))
        *_, error, done = response.text.strip().split("\n\n")
        assert "lost" in error
        assert done == "data: [DONE]"
