"""How OpenAI's own client must fail: by its own exceptions, and with nothing left running."""

import asyncio

import httpx
import openai
import pytest

from tests.real_engine.openai_calls import FAULTS, OTHER_MODELS, PLAIN, Call
from tests.real_engine.processes import settled
from tests.real_engine.servers import API_KEY, Server

RUNNING = "vllm:num_requests_running{"
ABORTED = 'vllm:request_success_total{engine="0",finished_reason="abort"'

LONG = PLAIN.but(max_tokens=1900, extra_body={"ignore_eos": True})
"""Takes the engine far longer than anyone here waits."""


class FailsAsOpenAIClient:
    """The checks of one server that asks for `API_KEY`, whose module has the fixture `server`."""

    @pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
    @pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
    def test_a_mistake_is_a_bad_request(self, client: openai.OpenAI, fault: Call, streamed: bool) -> None:
        with pytest.raises(openai.BadRequestError) as raised:
            fault.endpoint(client).create(**fault.fields, stream=streamed)

        assert (raised.value.param, raised.value.type) == (fault.name, "BadRequestError")

    @pytest.mark.parametrize("fault", OTHER_MODELS, ids=lambda fault: fault.name)
    def test_another_model_is_not_found(self, client: openai.OpenAI, fault: Call) -> None:
        with pytest.raises(openai.NotFoundError) as raised:
            fault.endpoint(client).create(**fault.fields)

        assert raised.value.param == "model"

    @pytest.mark.parametrize("key", ["another", API_KEY[:-1]])
    def test_another_key_is_refused(self, client: openai.OpenAI, key: str) -> None:
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key=key).models.list()

    def test_a_closed_stream_stops_the_engine(self, client: openai.OpenAI, server: Server) -> None:
        with LONG.endpoint(client).create(**LONG.fields, stream=True) as chunks:
            assert next(iter(chunks)).choices[0].text
            assert metric(server, RUNNING) == 1

        assert settled(lambda: metric(server, RUNNING), 0) == 0

    async def test_a_cancelled_call_stops_the_engine(self, server: Server) -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0) as client:
            calls = [asyncio.create_task(LONG.endpoint(client).create(**LONG.fields)) for _ in range(3)]
            assert await asyncio.to_thread(settled, lambda: metric(server, RUNNING), 3) == 3, calls

            for each in calls:
                each.cancel()
            await asyncio.wait(calls)

            assert await asyncio.to_thread(settled, lambda: metric(server, RUNNING), 0) == 0

    def test_a_timeout_and_its_retry_stop_the_engine(self, client: openai.OpenAI, server: Server) -> None:
        before = metric(server, ABORTED)

        with pytest.raises(openai.APITimeoutError):
            LONG.endpoint(client.with_options(timeout=2, max_retries=1)).create(**LONG.fields)

        assert settled(lambda: metric(server, ABORTED), before + 2) == before + 2
        assert metric(server, RUNNING) == 0


def metric(server: Server, name: str) -> float:
    """The sum of those that start so."""
    lines = httpx.get(f"{server.url}/metrics", trust_env=False).text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))
