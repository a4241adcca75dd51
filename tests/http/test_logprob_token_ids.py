"""`logprob_token_ids`: the scores of chosen ids beside each sampled token (contract 4.3, 5.2 and 6.4)."""

from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import TokenDelta
from domain.logprobs import LogprobColumns
from tests.http.answers import answer, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question, with_logprobs
from tests.http.vocabulary import LACKING, HardTokenizer

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
A, B, H = 65, 66, 104


def scores(*rows: list[int]) -> ScriptedEngine:
    """Samples the first of each row, beside which it scored the rest; each with minus its id."""
    return ScriptedEngine(
        [TokenDelta([row[0]], LogprobColumns(len(row), row, [-float(i) for i in row], [3])) for row in rows]
    )


async def listed(app: Litestar, path: str, ids: list[int], alternatives: int = 0, **fields: Any) -> list[list[Any]]:
    """At each position, what is shown beside or as the sampled token, with its logprob, in order."""
    body = question(path, logprob_token_ids=ids, **with_logprobs(path, alternatives), **fields)
    logprobs = answer(await post(app, path, body)).logprobs
    assert logprobs is not None
    if path == CHAT:
        return [[(top["token"], top["logprob"]) for top in row["top_logprobs"]] for row in logprobs["content"]]
    return [list(row.items()) for row in logprobs["top_logprobs"]]


@by_endpoint
@STREAMED
async def test_the_sampled_token_then_the_ids_in_the_requests_order(path: str, stream: bool) -> None:
    engine = scores([H, B, 33, A], [A, B, 33, A])
    assert await listed(application(engine), path, [B, 33, A], stream=stream) == [
        [("h", -104), ("B", -66), ("!", -33), ("A", -65)],
        [("A", -65), ("B", -66), ("!", -33)],
    ]
    [request] = engine.submitted
    assert (request.sampling.logprob_token_ids, request.sampling.prompt_logprobs) == ([B, 33, A], None)


@by_endpoint
@STREAMED
async def test_each_id_once(path: str, stream: bool) -> None:
    app = application(scores([H, B, A, B, H, A]))
    assert await listed(app, path, [B, A, B, H, A], stream=stream) == [[("h", -104), ("B", -66), ("A", -65)]]


@by_endpoint
@STREAMED
@pytest.mark.parametrize("alternatives", [0, 1, 2])
async def test_all_of_them_whatever_the_count_of_alternatives(path: str, stream: bool, alternatives: int) -> None:
    """Neither the request's own count nor the server's cap limits them."""
    ids = list(range(128))
    app = application(scores([H, *ids]), max_logprobs=2)
    [row] = await listed(app, path, ids, alternatives, stream=stream, return_tokens_as_token_ids=True)
    assert [token for token, _ in row] == [f"token_id:{i}" for i in [H, *range(H), *range(H + 1, 128)]]


@by_endpoint
async def test_an_id_without_a_character_of_its_own(path: str) -> None:
    """As among any other alternatives: rules 2.5, 2.6 and 5.3."""
    ids = [0xF0, EOS_TOKEN_ID, LACKING, 0xFF]
    app = application(scores([H, *ids]), tokenizer=HardTokenizer(), vocab_size=1000)
    [row] = await listed(app, path, ids)
    part, lacking = ("", "") if path == CHAT else (r"bytes:\xf0", f"token_id:{LACKING}")
    assert [token for token, _ in row] == ["h", part, "<|eos|>", lacking, "\ufffd"]


@by_endpoint
@STREAMED
async def test_they_have_the_scores_that_they_have_among_all(path: str, stream: bool) -> None:
    """Over an engine that scores by itself."""
    app = application(
        MockEngine(DeterministicModel(VOCAB_SIZE, byte_vocabulary=True).start, tokens_per_step=3), max_logprobs=-1
    )
    fields: dict[str, Any] = {"max_tokens": 8, "stream": stream, "return_tokens_as_token_ids": True}
    ids = [200, 5, 0, EOS_TOKEN_ID, 101]
    everything = answer(await post(app, path, question(path, **with_logprobs(path, -1), **fields))).logprobs
    assert everything is not None
    rows = (
        everything["top_logprobs"]
        if path == COMPLETIONS
        else [{top["token"]: top["logprob"] for top in row["top_logprobs"]} for row in everything["content"]]
    )

    found = await listed(app, path, ids, **fields)

    assert len(found) == len(rows) == 8
    for row, full in zip(found, rows, strict=True):
        assert len(full) == VOCAB_SIZE
        sampled = next(iter(full))
        names = dict.fromkeys([sampled, *(f"token_id:{token_id}" for token_id in ids)])
        assert row == [(name, full[name]) for name in names]


@STREAMED
@pytest.mark.parametrize("logprobs", [0, 2])
async def test_echoed_prompt_rows_keep_what_is_likeliest(stream: bool, logprobs: int) -> None:
    prompt = LogprobColumns(3, [98, 120, 121], [-3.0, -1.0, -2.0], [9])
    output = LogprobColumns(4, [H, B, A, 33], [-0.5, -4.0, -5.0, -6.0], [1])
    engine = ScriptedEngine([TokenDelta([H], output, prompt)])

    fields = {"prompt": "ab", "echo": True, "logprobs": logprobs, "logprob_token_ids": [B, A, 33]}
    shown = answer(await post(application(engine), COMPLETIONS, fields | {"stream": stream}))

    assert shown.text == "abh"
    assert shown.alternatives == [[], ["b", "x", "y"][: logprobs + 1], ["h", "B", "A", "!"]]
    [request] = engine.submitted
    assert request.sampling.prompt_logprobs == logprobs
    assert request.sampling.logprob_token_ids == [B, A, 33]


@by_endpoint
async def test_prompt_logprobs_keep_what_is_likeliest(path: str) -> None:
    prompt = LogprobColumns(2, [98, 120], [-3.0, -1.0], [9])
    output = LogprobColumns(3, [H, B, A], [-0.5, -4.0, -5.0], [1])
    app = application(ScriptedEngine([TokenDelta([H], output, prompt)]))

    fields = {"prompt_logprobs": 1, "logprob_token_ids": [B, A], **with_logprobs(path, 0)}
    body = (await post(app, path, question(path, "ab", **fields))).json()

    *_, last = body["prompt_logprobs"] if path == CHAT else body["choices"][0]["prompt_logprobs"]
    assert list(last) == ["98", "120"]


async def refused(path: str, ids: list[int] | None, **fields: Any) -> str:
    engine = ScriptedEngine(steps(H))
    error = error_of(await post(application(engine), path, question(path, logprob_token_ids=ids, **fields)), 400)
    assert error["param"] == "logprob_token_ids"
    assert not engine.submitted
    message: str = error["message"]
    return message


@by_endpoint
@STREAMED
class TestRefused:
    async def test_none_at_all(self, path: str, stream: bool) -> None:
        """An empty list is no list: not the likeliest tokens in its place, not nothing."""
        assert "128" in await refused(path, [], stream=stream, **with_logprobs(path, 1))

    async def test_too_many(self, path: str, stream: bool) -> None:
        assert "128" in await refused(path, [5] * 129, stream=stream, **with_logprobs(path, 1))

    @pytest.mark.parametrize("lacking", [VOCAB_SIZE, 2**40])
    async def test_out_of_vocabulary(self, path: str, stream: bool, lacking: int) -> None:
        assert str(lacking) in await refused(path, [5, lacking], stream=stream, **with_logprobs(path, 1))

    async def test_without_logprobs(self, path: str, stream: bool) -> None:
        without: list[dict[str, Any]] = [{}, {"logprobs": None}]
        for fields in [*without, {"logprobs": False}] if path == CHAT else without:
            assert "logprobs" in await refused(path, [5], stream=stream, **fields)


@STREAMED
async def test_refused_where_there_are_no_output_tokens(stream: bool) -> None:
    for logprobs in (0, 1, None):
        assert await refused(COMPLETIONS, [5], max_tokens=0, echo=True, logprobs=logprobs, stream=stream)


@by_endpoint
async def test_null_is_absent(path: str) -> None:
    engine = ScriptedEngine(steps(H, alternatives=[1]))
    body = question(path, logprob_token_ids=None, **with_logprobs(path, 1))
    answer(await post(application(engine), path, body))
    assert engine.submitted[0].sampling.logprob_token_ids is None


@by_endpoint
async def test_the_count_of_alternatives_is_checked_all_the_same(path: str) -> None:
    engine = ScriptedEngine(steps(H))
    body = question(path, logprob_token_ids=[5], **with_logprobs(path, 21))
    assert error_of(await post(application(engine), path, body), 400)["param"] in ("logprobs", "top_logprobs")
