"""OpenAI's own client over real sockets: it reads what we send as its types have it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam

from adapters.outbound.mock_engine.scripted import Script, ScriptedEngine, steps
from application.ports.engine import EngineUnavailable
from domain.generation import TokenDelta
from tests.e2e.serving import listening
from tests.http.serving import application

HI: ChatCompletionUserMessageParam = {"role": "user", "content": "hi"}


@asynccontextmanager
async def connected(script: Script) -> AsyncIterator[openai.AsyncOpenAI]:
    async with (
        listening(application(ScriptedEngine(script))) as address,
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


async def test_chat() -> None:
    async with connected(steps(104, 105, alternatives=[104, 105])) as client:
        answer = await client.chat.completions.create(model="m", messages=[HI], logprobs=True, top_logprobs=2)
        [choice] = answer.choices
        assert choice.message.content == "hi"
        assert choice.message.tool_calls is None
        assert choice.logprobs is not None
        assert choice.logprobs.content is not None
        assert [entry.token for entry in choice.logprobs.content] == ["h", "i"]
        assert [[other.token for other in entry.top_logprobs] for entry in choice.logprobs.content] == [
            ["h", "i"],
            ["i", "h"],
        ]
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 2


async def test_case_18_logprobs_alone() -> None:
    async with connected(steps(104)) as client:
        [choice] = (await client.chat.completions.create(model="m", messages=[HI], logprobs=True)).choices
        assert choice.logprobs is not None
        assert choice.logprobs.content is not None
        [entry] = choice.logprobs.content
        assert (entry.token, entry.logprob, entry.bytes, entry.top_logprobs) == ("h", -0.125, [104], [])


async def test_chat_stream() -> None:
    async with connected(steps(104, 105)) as client:
        stream = await client.chat.completions.create(
            model="m", messages=[HI], stream=True, stream_options={"include_usage": True}
        )
        *chunks, last = [chunk async for chunk in stream]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "hi"
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[-1].choices[0].finish_reason == "length"
        assert not last.choices
        assert last.usage is not None
        assert last.usage.completion_tokens == 2


async def test_completions() -> None:
    async with connected(steps(104, 105, alternatives=[104, 105])) as client:
        [choice] = (await client.completions.create(model="m", prompt="hi", logprobs=1)).choices
        assert choice.text == "hi"
        assert choice.logprobs is not None
        assert choice.logprobs.tokens == ["h", "i"]
        assert choice.logprobs.text_offset == [0, 1]

        stream = await client.completions.create(model="m", prompt="hi", stream=True)
        assert "".join([chunk.choices[0].text async for chunk in stream]) == "hi"


async def test_errors() -> None:
    async with connected(steps(104)) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.completions.create(model="m", prompt="hi", n=0)
        assert refused.value.param == "n"
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.chat.completions.create(model="other", messages=[HI])
        assert unknown.value.param == "model"
    async with connected(EngineUnavailable("Try later.")) as client:
        with pytest.raises(openai.InternalServerError) as unavailable:
            await client.completions.create(model="m", prompt="hi")
        assert unavailable.value.status_code == 503


async def test_failure_in_the_middle_of_a_stream() -> None:
    async with connected([TokenDelta([104]), EngineUnavailable("It went wrong.")]) as client:
        stream = await client.completions.create(model="m", prompt="hi", stream=True)
        with pytest.raises(openai.APIError, match="It went wrong"):
            [chunk async for chunk in stream]


async def test_models() -> None:
    async with connected(steps(104)) as client:
        assert [model.id async for model in client.models.list()] == ["m"]


async def test_client_that_leaves_a_stream() -> None:
    engine = ScriptedEngine([TokenDelta([104])] * 100_000)
    async with (
        listening(application(engine)) as address,
        openai.AsyncOpenAI(base_url=f"{address}/v1", api_key="none") as client,
    ):
        async with await client.completions.create(model="m", prompt="hi", stream=True, max_tokens=2000) as stream:
            await anext(aiter(stream))
        async with asyncio.timeout(1):
            assert (await engine.next_aborted()).startswith("cmpl-")
        assert engine.running == 0
