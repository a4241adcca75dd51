"""Requests that schemathesis makes of the server's own OpenAPI document, and what it says of their answers."""

import asyncio
import json
from collections import Counter
from functools import cache

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from tests.fuzz.checks import described
from tests.fuzz.run import Result, told
from tests.fuzz.servers import Server, serving
from tests.http.serving import client_of

load_all_checks()

ANSWERED, REFUSED = "answered", "refused"

CONTRACT = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
    ]
)


@cache
def operations() -> dict[str, APIOperation]:
    """Those that take a body, by method and path."""
    schema = schemathesis.openapi.from_dict(described().document)
    found = [operation.ok() for operation in schema.get_all_operations()]
    return {operation.label: operation for operation in found if operation.body}


def run(label: str, mode: GenerationMode, number: int | str, examples: int) -> Result:
    """So many requests that fit the document, or do not."""
    counted: Counter[str] = Counter()
    with asyncio.Runner() as runner:
        open_server = serving("model")
        server = runner.run(open_server.__aenter__())

        @seed(number)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operations()[label].as_strategy(generation_mode=mode))
        def each(case: Case) -> None:
            response = runner.run(_sent(server, case))
            case.validate_response(response, checks=CONTRACT)
            described().check(case.operation.path, response, case.operation.method)
            counted[ANSWERED if response.is_success else REFUSED] += 1

        try:
            each()
            assert server.running() == 0
        except Exception as failure:
            return Result(counted, f"{label}, {mode} by the document: {told(failure)}")
        finally:
            runner.run(open_server.__aexit__(None, None, None))
    return Result(counted, None)


async def _sent(server: Server, case: Case) -> httpx.Response:
    given = case.as_transport_kwargs(base_url="http://in-process")
    content = json.dumps(given["json"]).encode() if "json" in given else given.get("data")
    async with client_of(server.app) as client:
        return await client.request(given["method"], given["url"], headers=given.get("headers"), content=content)
