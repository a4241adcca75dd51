"""Who is let in, by which paths, and what every response carries."""

import re
from collections.abc import Mapping

import httpx
import pytest
from litestar.types import ASGIApp

from adapters.bootstrap.app import build_server_app
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import FinishReason
from tests.cli.commands import serve
from tests.http.serving import CHAT, COMPLETIONS, client_of, container, get, post, question

MODELS = "/v1/models"


def server(*words: str, environ: Mapping[str, str] | None = None) -> ASGIApp:
    """What `northbound serve` with these flags serves."""
    engine = ScriptedEngine(steps(72, 257, finish_reason=FinishReason.STOP))
    return build_server_app(container(engine), serve("m", *words, environ=environ).http)


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


class TestKeys:
    async def test_without_any_whoever_connects_may_ask(self) -> None:
        assert (await get(server(), MODELS)).status_code == 200

    @pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
    async def test_each_of_them_opens(self, path: str) -> None:
        app = server("--api-key", "first", "second")
        for key in ("first", "second"):
            assert (await post(app, path, question(path), **bearer(key))).status_code == 200

    @pytest.mark.parametrize(
        "authorization",
        [
            "",
            "Bearer",
            "Bearer ",
            "Bearer firs",
            "Bearer first2",
            "bearer FIRST",
            "Basic first",
            "first",
            "Bearer  first",
        ],
    )
    async def test_nothing_else_does(self, authorization: str) -> None:
        response = await get(server("--api-key", "first", "second"), MODELS, authorization=authorization)
        assert (response.status_code, response.content) == (401, b'{"error":"Unauthorized"}')
        assert response.headers["content-type"] == "application/json"

    async def test_a_request_without_one_is_turned_away_before_its_body_is_read(self) -> None:
        response = await post(server("--api-key", "k"), CHAT, b"no JSON at all")
        assert (response.status_code, response.content) == (401, b'{"error":"Unauthorized"}')

    async def test_the_scheme_may_be_written_in_any_case(self) -> None:
        assert (await get(server("--api-key", "k"), MODELS, authorization="bEARER k")).status_code == 200

    async def test_a_key_may_be_of_any_characters(self) -> None:
        app = server("--api-key", "clé a")
        async with client_of(app) as client:
            headers = {b"authorization": "Bearer clé a".encode()}
            assert (await client.get(MODELS, headers=headers)).status_code == 200

    async def test_the_environment_gives_one_too(self) -> None:
        app = server(environ={"VLLM_API_KEY": "k"})
        assert (await get(app, MODELS)).status_code == 401
        assert (await get(app, MODELS, **bearer("k"))).status_code == 200

    @pytest.mark.parametrize("path", ["/health", "/version", "/metrics"])
    async def test_operators_need_none(self, path: str) -> None:
        assert (await get(server("--api-key", "k"), path)).status_code == 200

    @pytest.mark.parametrize("path", ["/v1/nothing", "/v2/rerank", "/inference/v1/nothing", "/v1", "/v10"])
    async def test_what_is_guarded_is_not_told_to_be_there_or_not(self, path: str) -> None:
        app = server("--api-key", "k")
        assert (await get(app, path)).status_code == 401
        assert (await get(app, path, **bearer("k"))).status_code == 404

    @pytest.mark.parametrize("path", ["//v1/models", "/v1//models", "///v1/models/", "/v1/models/", "/%76%31/models"])
    async def test_no_spelling_of_a_path_leads_around_it(self, path: str) -> None:
        app = server("--api-key", "k")
        async with client_of(app) as client:
            url = httpx.URL("http://in-process", raw_path=path.encode())
            assert (await client.get(url)).status_code == 401
            assert (await client.get(url, headers=bearer("k"))).status_code == 200


class TestPrefix:
    @pytest.mark.parametrize("root", ["/api/vllm", "/api/vllm/", "api/vllm"])
    async def test_paths_may_have_it_or_not(self, root: str) -> None:
        app = server("--root-path", root)
        for path in (MODELS, f"/api/vllm{MODELS}", "/api/vllm/health"):
            assert (await get(app, path)).status_code == 200
        assert (await post(app, f"/api/vllm{CHAT}", question(CHAT))).status_code == 200

    @pytest.mark.parametrize("path", ["/api/vllmv1/models", "/api/v1/models", "/x/api/vllm/v1/models", "/api/vllm"])
    async def test_nothing_else_is_taken_off(self, path: str) -> None:
        assert (await get(server("--root-path", "/api/vllm"), path)).status_code == 404

    async def test_behind_it_the_same_keys_are_asked_for(self) -> None:
        app = server("--root-path", "/api", "--api-key", "k")
        for path in (f"/api{MODELS}", MODELS, f"/api/{MODELS}"):
            assert (await get(app, path)).status_code == 401
            assert (await get(app, path, **bearer("k"))).status_code == 200
        assert (await get(app, "/api/health")).status_code == 200


class TestOrigins:
    ORIGIN = "https://a.example"

    async def preflight(self, app: ASGIApp, origin: str = ORIGIN, **headers: str) -> httpx.Response:
        async with client_of(app) as client:
            asked = {"origin": origin, "access-control-request-method": "POST"} | headers
            return await client.options(CHAT, headers=asked)

    def server(self, *words: str) -> ASGIApp:
        return server("--allowed-origins", f'["{self.ORIGIN}"]', *words)

    async def test_by_default_pages_of_others_are_told_nothing(self) -> None:
        response = await get(server(), MODELS, origin=self.ORIGIN)
        assert response.status_code == 200
        assert not [name for name in response.headers if name.startswith("access-control")]
        assert "access-control-allow-origin" not in (await self.preflight(server())).headers

    async def test_an_allowed_one_may_ask(self) -> None:
        app = self.server("--allow-credentials")
        preflight = await self.preflight(app)
        assert preflight.is_success
        for response in (preflight, await get(app, MODELS, origin=self.ORIGIN)):
            assert response.headers["access-control-allow-origin"] == self.ORIGIN
            assert response.headers["access-control-allow-credentials"] == "true"
        stream = await post(app, CHAT, question(CHAT, stream=True), origin=self.ORIGIN)
        assert stream.headers["access-control-allow-origin"] == self.ORIGIN

    async def test_another_may_not(self) -> None:
        app = self.server()
        assert (await self.preflight(app, "https://b.example")).status_code == 400
        response = await get(app, MODELS, origin="https://b.example")
        assert "access-control-allow-origin" not in response.headers

    async def test_methods_and_headers_are_as_given(self) -> None:
        app = self.server("--allowed-methods", '["POST"]', "--allowed-headers", '["x-mine"]')
        assert (await self.preflight(app, **{"access-control-request-headers": "x-mine"})).is_success
        assert (await self.preflight(app, **{"access-control-request-headers": "x-yours"})).status_code == 400
        assert (await self.preflight(app, **{"access-control-request-method": "GET"})).status_code == 400

    async def test_a_failure_tells_them_too(self) -> None:
        response = await post(self.server(), CHAT, b"{", origin=self.ORIGIN)
        assert response.status_code == 400
        assert response.headers["access-control-allow-origin"] == self.ORIGIN

    async def test_a_preflight_needs_no_key(self) -> None:
        assert (await self.preflight(self.server("--api-key", "k"))).is_success


class TestRequestIds:
    async def test_only_with_the_flag(self) -> None:
        assert "x-request-id" not in (await get(server(), MODELS, **{"x-request-id": "mine"})).headers

    async def test_it_is_the_request_s_own(self) -> None:
        app = server("--enable-request-id-headers")
        asked = question(CHAT, stream=True)
        for response in (
            await get(app, "/health", **{"x-request-id": "mine"}),
            await post(app, CHAT, asked, **{"x-request-id": "mine"}),
        ):
            assert response.headers.get_list("x-request-id") == ["mine"]

    async def test_else_it_is_random_and_failures_have_it_too(self) -> None:
        app = server("--enable-request-id-headers", "--api-key", "k")
        ids = [(await get(app, path)).headers["x-request-id"] for path in ("/health", MODELS, "/nowhere")]
        assert len(set(ids)) == 3
        assert all(re.fullmatch("[0-9a-f]{32}", request_id) for request_id in ids)
