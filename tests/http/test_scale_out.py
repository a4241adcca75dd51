"""The paths of a server that is one part of several: closed, unless it was started as one."""

import pytest
from litestar.types import ASGIApp

from adapters.bootstrap.app import build_server_app
from adapters.inbound.http.vllm.gate import SCALE_OUT
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.cli.commands import serve
from tests.http.answers import error_of
from tests.http.serving import CHAT, container, post, question

PATHS = [
    "/inference/v1/abort_requests",
    "/inference/v1/generate",
    "/v1/chat/completions/derender",
    "/v1/chat/completions/render",
    "/v1/completions/derender",
    "/v1/completions/render",
    "/v1/messages/render",
    "/v1/responses/render",
]
UNBUILT = {"/v1/messages/render", "/v1/responses/render"}


def server(*words: str) -> ASGIApp:
    return build_server_app(container(ScriptedEngine(steps(104))), serve("m", *words).http)


def test_these_are_all() -> None:
    assert sorted(SCALE_OUT) == PATHS


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", [b"{}", b"", b"no JSON"])
async def test_they_are_closed(path: str, body: bytes) -> None:
    error = error_of(await post(server(), path, body), 403, "PermissionDeniedError")
    assert error["param"] is None
    assert "--enable-scale-out" in error["message"]


@pytest.mark.parametrize("flag", ["--enable-scale-out", "--tokens-only"])
@pytest.mark.parametrize("path", sorted(set(PATHS) - UNBUILT))
async def test_a_flag_opens_them(flag: str, path: str) -> None:
    error_of(await post(server(flag), path, {}), 400)


@pytest.mark.parametrize("path", sorted(UNBUILT))
async def test_what_is_not_built_is_not_there(path: str) -> None:
    error_of(await post(server("--enable-scale-out"), path, {}), 404, "NotFoundError")


async def test_the_other_routes_stay() -> None:
    for words in ((), ("--enable-scale-out",), ("--tokens-only",)):
        assert (await post(server(*words), CHAT, question(CHAT))).status_code == 200


async def test_without_an_engine_there_are_its_two_ends() -> None:
    app = build_server_app(container(ScriptedEngine(steps(104))), serve("m").http, generates=False)
    for path in PATHS:
        status = 400 if path.endswith("render") and path not in UNBUILT else 404
        assert (await post(app, path, {})).status_code == status
    assert (await post(app, CHAT, question(CHAT))).status_code == 404


class TestTheOlderPathOfAborts:
    async def test_is_that_of_tokens_only_and_asks_for_no_key(self) -> None:
        body = {"request_ids": ["r"]}
        for words, status in (((), 404), (("--enable-scale-out",), 404), (("--tokens-only",), 200)):
            assert (await post(server(*words), "/abort_requests", body)).status_code == status
        app = server("--tokens-only", "--api-key", "k")
        assert (await post(app, "/abort_requests", body)).status_code == 200
        assert (await post(app, "/inference/v1/abort_requests", body)).status_code == 401
        assert (await post(app, "/inference/v1/abort_requests", body, authorization="Bearer k")).status_code == 200
