"""What may come of any request at all."""

import json
import re
from functools import cache
from typing import Any

import httpx

from adapters.inbound.http.openapi.routes import ApiDocument
from domain.generation import FinishReason
from tests.fuzz.requests import ENDPOINT, Sent
from tests.http.answers import answers, error_of
from tests.http.described import OF_ADAPTERS, OF_TOKENS, PLAIN, Described

KINDS_OF_ERROR = {400: "BadRequestError", 404: "NotFoundError", 413: "RequestEntityTooLargeError"}
LARGEST_ERROR = 1024
MOST_ECHOED = 120
"""Characters of what was sent that an error may repeat: a name, a number."""

INSIDES = re.compile(
    r"msgspec|pydantic|litestar|jinja|transformers|uvicorn|zmq|tokenizers|Traceback|<class|<function|<locals>| at 0x"
    r"|\b([A-Z][a-z]+){2,}\b|\b(adapters|application|domain)\.|\.py\b|site-packages|/(home|usr|tmp|root|work)/"
)
"""What is nobody's business: names of libraries, classes and files."""


@cache
def described() -> Described:
    return Described(json.loads(ApiDocument([*PLAIN, *OF_ADAPTERS, *OF_TOKENS]).json))


def check(sent: Sent, response: httpx.Response) -> None:
    """An answer that is whole, or a small error in the caller's words."""
    if response.status_code == 200:
        described().check(sent.path, response)
        for answer in answers(response):
            assert answer.finish_reason in (FinishReason.LENGTH, FinishReason.STOP)
        return
    error = error_of(response, response.status_code, KINDS_OF_ERROR[response.status_code])
    described().check(sent.path, response)
    assert error["param"] is None or error["param"] in {*ENDPOINT[sent.path].typed, "data_parallel_rank"}
    assert len(response.content) <= LARGEST_ERROR
    message = error["message"]
    assert not INSIDES.search(message)
    for text in texts_in(sent.content):
        assert text[:MOST_ECHOED] not in message


def texts_in(content: bytes) -> list[str]:
    """Those of a body that are too long to be repeated."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return [content.decode(errors="replace")] if len(content) > MOST_ECHOED else []
    found: list[str] = []
    level: list[Any] = [body]
    while level:
        found += [value for value in level if isinstance(value, str) and len(value) > MOST_ECHOED]
        level = [
            inner
            for value in level
            for inner in (
                [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ()
            )
        ]
    return found
