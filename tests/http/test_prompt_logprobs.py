"""`prompt_logprobs`: what was likely at each token of the prompt, by id (contract 6.4, and 2, 4.2, 7.1, 8.1 for it)."""

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest

from adapters.outbound.byte_tokenizer.tokenizer import ByteTokenizer
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.ports.tokenizer import Tokenizer
from domain.generation import TokenDelta
from domain.logprobs import LogprobColumns
from tests.fakes import tokenizers
from tests.http.answers import Json, answer, chunks, error_of, undated
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question, with_logprobs
from tests.http.vocabulary import EOS, LACKING, NEW_LINES, PARTY, REPLACEMENT, ROLE, HardTokenizer

PROMPT_IDS = {CHAT: [258, 97, 98, ROLE], COMPLETIONS: [97, 98]}
"""What either endpoint makes of `ab`."""

Row = tuple[int, Sequence[int], Sequence[float]]
"""The rank of the token at a position, and the engine's row: the token first, then by rank."""

Entries = list[dict[str, Json] | None]


def engine_with(*rows: Row) -> ScriptedEngine:
    """Says `h!` behind a prompt with these scores."""
    columns = LogprobColumns(
        len(rows[0][1]),
        [token_id for _, ids, _ in rows for token_id in ids],
        [value for _, _, values in rows for value in values],
        [rank for rank, _, _ in rows],
    )
    first, *others = steps(104, 33, alternatives=[104, 33, 63])
    first = TokenDelta(first.token_ids, first.logprobs, columns)
    return ScriptedEngine([first, *others])


def unlikely(prompt: Sequence[int]) -> list[Row]:
    """Each token from the second on ranks 7th, behind `x`, `y`, `z`."""
    return [(7, [token_id, 120, 121, 122], [-3.0, -1.0, -1.5, -2.0]) for token_id in prompt[1:]]


async def prompt_logprobs_of(
    engine: ScriptedEngine, path: str, tokenizer: Tokenizer | None = None, **fields: Any
) -> Any:
    app = application(engine, tokenizer=tokenizer, vocab_size=1000, max_logprobs=fields.pop("cap", 20))
    body = (await post(app, path, question(path, "ab") | fields)).json()
    return body["prompt_logprobs"] if path == CHAT else body["choices"][0]["prompt_logprobs"]


def entry(logprob: float, rank: int | None, text: str) -> Json:
    return {"logprob": logprob, "rank": rank, "decoded_token": text}


def decoded(entries: Entries) -> list[list[str] | None]:
    return [None if row is None else [value["decoded_token"] for value in row.values()] for row in entries]


@by_endpoint
async def test_shape(path: str) -> None:
    """Null for the first token; then the real one first, though it is none of the likeliest, and those by rank."""
    prompt = PROMPT_IDS[path]
    expected: Entries = [None]
    for token_id in prompt[1:]:
        expected.append(
            {
                str(token_id): entry(-3.0, 7, ByteTokenizer().piece(token_id).text or ""),
                "120": entry(-1.0, 1, "x"),
                "121": entry(-1.5, 2, "y"),
            }
        )

    found = await prompt_logprobs_of(engine_with(*unlikely(prompt)), path, prompt_logprobs=2)

    assert json.dumps(found) == json.dumps(expected)  # in order, too


async def test_chat_byte_for_byte() -> None:
    engine = engine_with(*unlikely(PROMPT_IDS[CHAT]))
    body = question(CHAT, "ab", prompt_logprobs=1, request_id="x")
    assert undated((await post(application(engine), CHAT, body)).content).decode() == (
        '{"id":"chatcmpl-x","object":"chat.completion","created":1,"model":"m","choices":['
        '{"index":0,"message":{"role":"assistant","content":"h!","refusal":null,"annotations":null,"audio":null,'
        '"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,'
        '"token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-scripted-b9cb3ee1",'
        '"usage":{"prompt_tokens":4,"total_tokens":6,"completion_tokens":2,"prompt_tokens_details":null,'
        '"completion_tokens_details":null},"prompt_logprobs":[null,'
        '{"97":{"logprob":-3.0,"rank":7,"decoded_token":"a"},"120":{"logprob":-1.0,"rank":1,"decoded_token":"x"}},'
        '{"98":{"logprob":-3.0,"rank":7,"decoded_token":"b"},"120":{"logprob":-1.0,"rank":1,"decoded_token":"x"}},'
        '{"259":{"logprob":-3.0,"rank":7,"decoded_token":"<|assistant|>"},'
        '"120":{"logprob":-1.0,"rank":1,"decoded_token":"x"}}],"prompt_token_ids":null,"prompt_text":null,'
        '"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}'
    )


@by_endpoint
async def test_each_id_once_with_the_value_and_rank_of_its_first_occurrence(path: str) -> None:
    prompt = PROMPT_IDS[path]
    rows = [(2, [token_id, 120, token_id, 120], [-2.0, -1.0, -2.5, -4.0]) for token_id in prompt[1:]]

    found = await prompt_logprobs_of(engine_with(*rows), path, prompt_logprobs=3)

    assert [list(row.items()) for row in found[1:]] == [
        [
            (str(token_id), entry(-2.0, 2, ByteTokenizer().piece(token_id).text or "")),
            ("120", entry(-1.0, 1, "x")),
        ]
        for token_id in prompt[1:]
    ]


async def test_a_token_that_the_engine_gave_no_rank_has_none() -> None:
    found = await prompt_logprobs_of(engine_with((0, [98, 120], [-2.0, -1.0])), COMPLETIONS, prompt_logprobs=1)
    assert found == [None, {"98": entry(-2.0, None, "b"), "120": entry(-1.0, 1, "x")}]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (math.nan, -9999.0),
        (math.inf, -9999.0),
        (-math.inf, -9999.0),
        (-1e30, -9999.0),
        (-9999.5, -9999.0),
        (-9998.5, -9998.5),
        (-0.10000000149011612, -0.10000000149011612),
        (0.0, 0.0),
    ],
)
@by_endpoint
async def test_whatever_number_the_engine_gives(path: str, given: float, shown: float) -> None:
    rows = [(1, [token_id, 120, 121], [-0.5, given, -0.5]) for token_id in PROMPT_IDS[path][1:]]
    found = await prompt_logprobs_of(engine_with(*rows), path, prompt_logprobs=2)
    assert [[value["logprob"] for value in row.values()] for row in found[1:]] == [[-0.5, shown, -0.5]] * len(rows)

    rows = [(1, [token_id, 120, 121], [given, -0.5, given]) for token_id in PROMPT_IDS[path][1:]]
    found = await prompt_logprobs_of(engine_with(*rows), path, prompt_logprobs=2)
    assert [[value["logprob"] for value in row.values()] for row in found[1:]] == [[shown, -0.5, shown]] * len(rows)


class TestUnscored:
    """What the engine has no score for is null, however much of the prompt that is."""

    @by_endpoint
    async def test_nothing(self, path: str) -> None:
        found = await prompt_logprobs_of(ScriptedEngine(steps(104)), path, prompt_logprobs=2)
        assert found == [None] * len(PROMPT_IDS[path])

    async def test_only_the_end(self) -> None:
        found = await prompt_logprobs_of(engine_with(*unlikely(PROMPT_IDS[CHAT])[-1:]), CHAT, prompt_logprobs=0)
        assert found == [None, None, None, {str(ROLE): entry(-3.0, 7, "<|assistant|>")}]

    async def test_a_prompt_of_one_token(self) -> None:
        found = await prompt_logprobs_of(ScriptedEngine(steps(104)), COMPLETIONS, prompt="a", prompt_logprobs=0)
        assert found == [None]


class TestDecodedToken:
    """Rules 2.2 to 2.6 for prompts, whose special tokens are always shown."""

    @staticmethod
    async def texts(prompt: list[int], alternatives: list[int]) -> list[list[str] | None]:
        rows: list[Row] = [
            (2, [token_id, other], [-2.0, -1.0]) for token_id, other in zip(prompt[1:], alternatives, strict=True)
        ]
        engine = engine_with(*rows)
        return decoded(await prompt_logprobs_of(engine, COMPLETIONS, HardTokenizer(), prompt=prompt, prompt_logprobs=1))

    async def test_parts_of_a_character_are_read_behind_those_before(self) -> None:
        """An alternative is read against the same context, and is empty where it would still end inside it."""
        texts = await self.texts([0xF0, 0x9F, 0x8E, 0x89, 97], [0x28, 0x9F, 0x8A, 0xC3])
        assert texts == [None, ["", "\ufffd("], ["", ""], ["🎉", "🎊"], ["a", ""]]

    async def test_one_that_breaks_a_character_carries_what_was_held(self) -> None:
        assert await self.texts([97, 0xF0, 98, EOS], [98, 0x9F, 97]) == [
            None,
            ["", "b"],
            ["\ufffdb", ""],
            ["<|eos|>", "a"],
        ]

    async def test_special_tokens_read_as_themselves_and_break_a_character(self) -> None:
        assert await self.texts([97, EOS, 0xF0, EOS], [ROLE, ROLE, ROLE]) == [
            None,
            ["<|eos|>", "<|assistant|>"],
            ["", "<|assistant|>"],
            ["\ufffd<|eos|>", "\ufffd<|assistant|>"],
        ]

    async def test_entries_that_are_more_or_less_than_a_character(self) -> None:
        assert await self.texts([97, PARTY, REPLACEMENT, LACKING], [NEW_LINES, LACKING, 0xFF]) == [
            None,
            [" 🎉", "\n\n"],
            ["\ufffd", ""],
            ["", "\ufffd"],
        ]

    async def test_what_the_prompt_leaves_incomplete_is_empty(self) -> None:
        """The output may go on with it; where there is none, it is U+FFFD."""
        engine = engine_with((1, [0xF0, 97], [-1.0, -2.0]))
        fields: Json = {"prompt": [97, 0xF0], "prompt_logprobs": 0}
        assert decoded(await prompt_logprobs_of(engine, COMPLETIONS, **fields)) == [None, [""]]
        nothing = fields | {"max_tokens": 0, "echo": True}
        assert decoded(await prompt_logprobs_of(engine, COMPLETIONS, **nothing)) == [None, ["\ufffd"]]

    async def test_words_keep_their_leading_space(self) -> None:
        tokenizer = HfTokenizer(tokenizers.llama_bpe())
        prompt = tokenizer.encode("the dog", add_special_tokens=False)
        the, dog = prompt
        engine = engine_with((1, [dog, the], [-1.0, -2.0]))
        found = await prompt_logprobs_of(engine, COMPLETIONS, tokenizer, prompt=prompt, prompt_logprobs=1)
        assert decoded(found) == [None, [" dog", " the"]]


@by_endpoint
async def test_the_display_does_not_change_them(path: str) -> None:
    """Contract 1.3: they are keyed by id already."""
    engine = engine_with(*unlikely(PROMPT_IDS[path]))
    fields = {"prompt_logprobs": 2, "request_id": "x", **with_logprobs(path, 1)}
    answers = []
    for flag in (False, True):
        for field in ({}, {"return_tokens_as_token_ids": True}, {"return_tokens_as_token_ids": False}):
            body = (await post(application(engine, flag=flag), path, question(path, "ab", **fields, **field))).json()
            answers.append(body["prompt_logprobs"] if path == CHAT else body["choices"][0]["prompt_logprobs"])
    assert all(shown == answers[0] for shown in answers)
    assert "token_id" not in json.dumps(answers)


class TestWidth:
    @by_endpoint
    async def test_0_is_the_token_alone(self, path: str) -> None:
        engine = engine_with(*unlikely(PROMPT_IDS[path]))
        found = await prompt_logprobs_of(engine, path, prompt_logprobs=0)
        assert [row and list(row) for row in found] == [None, *[[str(token_id)] for token_id in PROMPT_IDS[path][1:]]]
        assert engine.submitted[0].sampling.prompt_logprobs == 0
        assert engine.submitted[0].sampling.logprobs is None

    @by_endpoint
    async def test_minus_1_is_everything_where_it_is_allowed(self, path: str) -> None:
        engine = engine_with(*unlikely(PROMPT_IDS[path]))
        found = await prompt_logprobs_of(engine, path, prompt_logprobs=-1, cap=-1)
        assert [list(row) for row in found[1:]] == [
            [str(token_id), "120", "121", "122"] for token_id in PROMPT_IDS[path][1:]
        ]
        assert engine.submitted[0].sampling.prompt_logprobs == -1

    @by_endpoint
    @pytest.mark.parametrize("fields", [{}, {"prompt_logprobs": None}], ids=["absent", "null"])
    async def test_not_asked_for(self, path: str, fields: Json) -> None:
        engine = engine_with(*unlikely(PROMPT_IDS[path]))
        assert await prompt_logprobs_of(engine, path, **fields, **with_logprobs(path, 2)) is None
        assert engine.submitted[0].sampling.prompt_logprobs is None


@by_endpoint
class TestStreamed:
    @pytest.mark.parametrize("alternatives", [1, 20, 21, -1, -2])
    @pytest.mark.parametrize("cap", [20, -1])
    async def test_refused(self, path: str, alternatives: int, cap: int) -> None:
        engine = engine_with(*unlikely(PROMPT_IDS[path]))
        body = question(path, stream=True, prompt_logprobs=alternatives)
        error = error_of(await post(application(engine, max_logprobs=cap), path, body), 400)
        assert error["param"] == "prompt_logprobs"
        assert "stream" in error["message"]
        assert not engine.submitted

    async def test_0_passes_and_is_not_shown(self, path: str) -> None:
        app = application(engine_with(*unlikely(PROMPT_IDS[path])))
        plain, scored = [
            await post(app, path, question(path, "ab", stream=True, request_id="x", **field))
            for field in ({}, {"prompt_logprobs": 0})
        ]
        assert undated(scored.content) == undated(plain.content)
        assert "prompt_logprobs" not in scored.text
        assert chunks(scored)


class TestBesideEcho:
    """The echoed rows and `prompt_logprobs` come of one question to the engine, and each is as wide as it was asked."""

    PROMPT = PROMPT_IDS[COMPLETIONS]

    @staticmethod
    def keys(alternatives: int, names: Sequence[str]) -> list[list[str] | None]:
        return [None, list(names[: alternatives + 1])]

    @pytest.mark.parametrize(("logprobs", "prompt_logprobs"), [(1, 3), (3, 1), (0, 2), (2, 0), (2, 2), (0, 0)])
    @pytest.mark.parametrize("max_tokens", [0, 2])
    async def test_of_another_width(self, logprobs: int, prompt_logprobs: int, max_tokens: int) -> None:
        engine = engine_with(*unlikely(self.PROMPT))
        fields: Json = {
            "echo": True,
            "logprobs": logprobs,
            "prompt_logprobs": prompt_logprobs,
            "max_tokens": max_tokens,
        }

        response = await post(application(engine), COMPLETIONS, question(COMPLETIONS, "ab", **fields))

        [choice] = response.json()["choices"]
        assert [row and list(row) for row in choice["logprobs"]["top_logprobs"][:2]] == self.keys(logprobs, "bxyz")
        assert [row and list(row) for row in choice["prompt_logprobs"]] == self.keys(
            prompt_logprobs, ["98", "120", "121", "122"]
        )
        assert engine.submitted[0].sampling.prompt_logprobs == max(logprobs, prompt_logprobs)
        assert engine.submitted[0].sampling.logprobs == logprobs

    @pytest.mark.parametrize(("logprobs", "prompt_logprobs"), [(1, -1), (-1, 1)])
    async def test_all_of_one_and_some_of_the_other(self, logprobs: int, prompt_logprobs: int) -> None:
        engine = engine_with(*unlikely(self.PROMPT))
        fields: Json = {"echo": True, "logprobs": logprobs, "prompt_logprobs": prompt_logprobs}

        response = await post(application(engine, max_logprobs=-1), COMPLETIONS, question(COMPLETIONS, "ab", **fields))

        [choice] = response.json()["choices"]
        assert len(choice["logprobs"]["top_logprobs"][1]) == (2 if logprobs == 1 else 4)
        assert len(choice["prompt_logprobs"][1]) == (2 if prompt_logprobs == 1 else 4)
        assert engine.submitted[0].sampling.prompt_logprobs == -1

    @pytest.mark.parametrize("field", [{}, {"prompt_logprobs": None}], ids=["absent", "null"])
    async def test_echoed_scores_fill_it(self, field: Json) -> None:
        """Same as vLLM."""
        engine = engine_with(*unlikely(self.PROMPT))
        found = await prompt_logprobs_of(engine, COMPLETIONS, echo=True, logprobs=1, **field)
        assert [row and list(row) for row in found] == [None, ["98", "120"]]
        assert await prompt_logprobs_of(engine, COMPLETIONS, echo=True, **field) is None

    async def test_without_logprobs_there_are_no_rows(self) -> None:
        engine = engine_with(*unlikely(self.PROMPT))
        body = question(COMPLETIONS, "ab", echo=True, prompt_logprobs=1)
        [choice] = (await post(application(engine), COMPLETIONS, body)).json()["choices"]
        assert choice["logprobs"] is None
        assert [row and list(row) for row in choice["prompt_logprobs"]] == [None, ["98", "120"]]
        assert choice["text"] == "abh!"

    async def test_0_in_an_echoed_stream_leaves_its_rows_alone(self) -> None:
        app = application(engine_with(*unlikely(self.PROMPT)))
        body = question(COMPLETIONS, "ab", echo=True, logprobs=2)
        whole, streamed = [
            answer(await post(app, COMPLETIONS, body | fields))
            for fields in ({}, {"stream": True, "prompt_logprobs": 0})
        ]
        assert streamed.logprobs == whole.logprobs
        assert streamed.alternatives[1] == ["b", "x", "y"]
