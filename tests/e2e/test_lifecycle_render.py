"""`northbound render`, which has no engine, in front of and behind a server that makes no text of tokens."""

from tests.e2e.programs import Programs, Server, ends, log_of
from tests.e2e.serving import client_at
from tests.http.serving import CHAT, COMPLETIONS, by_endpoint, question


def rendering(programs: Programs, *words: str) -> Server:
    return programs.render("--host", "127.0.0.1", "--port", "0", *words)


async def test_it_is_healthy_as_soon_as_the_tokenizer_is_loaded(programs: Programs) -> None:
    renderer = rendering(programs, "--log-level", "DEBUG")
    await renderer.ready()
    loaded, serving = log_of(renderer).splitlines()  # and waited for nothing else
    assert "loaded the tokenizer" in loaded
    assert "serving " in serving
    await renderer.stops()


@by_endpoint
async def test_a_round_trip_over_two_processes(programs: Programs, path: str) -> None:
    renderer = rendering(programs, "--return-tokens-as-token-ids")
    generator = programs.serve(programs.model, "--engine", "mock", "--tokens-only", "--max-model-len", "2048")
    await renderer.ready()
    await generator.ready()
    rows = {"logprobs": True, "top_logprobs": 1} if path == CHAT else {"logprobs": 1}
    asked = question(path, "Hello", max_tokens=6, return_tokens_as_token_ids=False, **rows)
    async with client_at(renderer.address) as ends_of, client_at(generator.address) as middle:
        rendered = (await ends_of.post(f"{path}/render", json=asked)).json()
        prompt = rendered if path == CHAT else rendered[0]
        generated = (await middle.post("/inference/v1/generate", json=prompt)).json()
        ids, count = prompt["token_ids"], len(prompt["token_ids"])
        told = (
            {"generate_response": generated, "prompt_token_ids": ids, "prompt_tokens": count, "chat_request": asked}
            if path == CHAT
            else {
                "generate_responses": [generated],
                "prompt_token_ids": [ids],
                "prompt_tokens": [count],
                "completion_request": asked,
            }
        )
        body = (await ends_of.post(f"{path}/derender", json=told)).json()
        expected = (await middle.post(path, json=asked)).json()
    assert body["choices"] == expected["choices"]
    assert body["usage"] == expected["usage"]
    assert body["system_fingerprint"] is None


async def test_it_generates_nothing(programs: Programs) -> None:
    renderer = await rendering(programs).ready()
    async with client_at(renderer.address) as client:
        for path in (CHAT, COMPLETIONS, "/inference/v1/generate"):
            assert (await client.post(path, json=question(CHAT))).status_code == 404
        assert (await client.get("/v1/models")).json()["data"][0]["max_model_len"] == 2048
        document = (await client.get("/openapi.json")).json()
    assert f"{CHAT}/render" in document["paths"]
    assert CHAT not in document["paths"]


async def test_a_model_that_does_not_say_how_long_its_context_is(programs: Programs) -> None:
    config = programs.model / "config.json"
    before = config.read_text()
    config.write_text(before.replace('"max_position_embeddings": 2048, ', ""))
    try:
        renderer = rendering(programs)
        assert await ends(renderer) == 1
        assert "--max-model-len" in log_of(renderer)
    finally:
        config.write_text(before)
    await (rendering(programs, "--max-model-len", "99")).ready()
