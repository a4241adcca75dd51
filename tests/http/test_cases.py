"""What users of OpenAI-compatible servers reported about logprobs, stops and lost clients, each as a small input.

The numbers are those of the list of reports these come from; each stands for its kind. Those about prompts are in
test_cases_of_prompts.
"""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step, steps
from domain.generation import FinishReason, TokenDelta
from domain.logprobs import LogprobColumns
from tests.fakes.tokenizers import byte_level_bpe
from tests.http.answers import Json, answer, answers, chunks, error_of
from tests.http.exchange import Exchange
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, counted, post, question, with_logprobs
from tests.http.vocabulary import ALSO_TRUE, EOS, ROLE, TRUE, WORD, HardTokenizer, byte_tokens

AS_IDS = {"return_tokens_as_token_ids": True}
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def says(*token_ids: int, entries: dict[int, bytes] | None = None, **kwargs: Any) -> Litestar:
    """Answers with these tokens, scored."""
    engine = ScriptedEngine(steps(*token_ids, **kwargs))
    return application(engine, tokenizer=HardTokenizer(entries) if entries else HardTokenizer())


async def logprobs_of(app: Litestar, path: str, **fields: Any) -> Json:
    found = answer(await post(app, path, question(path, **fields))).logprobs
    assert found is not None
    return found


async def entries_of(app: Litestar, **fields: Any) -> list[Json]:
    found: list[Json] = (await logprobs_of(app, CHAT, logprobs=True, **fields))["content"]
    return found


@STREAMED
async def test_case_1_offsets_do_not_depend_on_the_display(stream: bool) -> None:
    app = says(WORD, WORD, *b"!?", TRUE)
    body = question(COMPLETIONS, "One two", stream=stream, logprobs=1)

    by_text, by_id = [answer(await post(app, COMPLETIONS, body | field)) for field in ({}, AS_IDS)]

    assert by_text.logprobs is not None
    assert by_id.logprobs is not None
    assert by_text.tokens != by_id.tokens
    offsets = by_text.logprobs["text_offset"]
    assert offsets == by_id.logprobs["text_offset"] == [0, 5, 10, 11, 12]
    assert [by_id.text[start:end] for start, end in pairwise([*offsets, None])] == by_text.tokens


@STREAMED
async def test_case_3_every_alternative_has_its_own_id(stream: bool) -> None:
    app = says(104, 105, 33, alternatives=[104, 105, 33])
    entries = await entries_of(app, top_logprobs=3, stream=stream, **AS_IDS)
    assert [[other["token"] for other in entry["top_logprobs"]] for entry in entries] == [
        ["token_id:104", "token_id:105", "token_id:33"],
        ["token_id:105", "token_id:104", "token_id:33"],
        ["token_id:33", "token_id:104", "token_id:105"],
    ]


@STREAMED
async def test_case_3_inside_a_character(stream: bool) -> None:
    app = says(*byte_tokens("🙂"), alternatives=[0x9F, 0x99, 104])
    entries = await entries_of(app, top_logprobs=4, stream=stream, **AS_IDS)
    for token_id, entry in zip(byte_tokens("🙂"), entries, strict=True):
        ids = list(dict.fromkeys([token_id, 0x9F, 0x99, 104]))
        assert [other["token"] for other in entry["top_logprobs"]] == [f"token_id:{other}" for other in ids]
        assert [other["bytes"] for other in entry["top_logprobs"]] == [[other] for other in ids]


@STREAMED
async def test_case_4_bytes_are_those_of_the_token_in_either_display(stream: bool) -> None:
    sampled = [104, 0xF0, 0x9F, 0x99, 0x82, ROLE, TRUE]
    app = says(*sampled, alternatives=[EOS, 0xC3, WORD])
    tokenizer = HardTokenizer()
    for field in ({}, AS_IDS):
        entries = await entries_of(app, top_logprobs=4, stream=stream, **field)
        for token_id, entry in zip(sampled, entries, strict=True):
            own, *others = [other["bytes"] for other in entry["top_logprobs"]]
            assert entry["bytes"] == own == list(tokenizer.piece(token_id).content)
            assert others == [list(tokenizer.piece(other).content) for other in (EOS, 0xC3, WORD)]


@STREAMED
class TestCase5TwoIdsWithOneText:
    """Completions' `top_logprobs` has one key for both."""

    @staticmethod
    async def row(stream: bool, sampled: int, values: list[float], **fields: Any) -> list[Any]:
        ids = [sampled, TRUE, ALSO_TRUE]
        step = TokenDelta([sampled], LogprobColumns(3, ids, values, [1]))
        app = application(ScriptedEngine([step]), tokenizer=HardTokenizer())
        [row] = (await logprobs_of(app, COMPLETIONS, logprobs=2, stream=stream, **fields))["top_logprobs"]
        return list(row.items())

    async def test_the_sampled_one_stays(self, stream: bool) -> None:
        assert await self.row(stream, TRUE, [-0.25, -0.25, -7.5]) == [("true", -0.25)]
        assert await self.row(stream, ALSO_TRUE, [-7.5, -0.25, -7.5]) == [("true", -7.5)]

    async def test_else_the_first_in_order(self, stream: bool) -> None:
        assert await self.row(stream, 104, [-9.0, -0.25, -7.5]) == [("h", -9.0), ("true", -0.25)]

    async def test_ids_do_not_collide(self, stream: bool) -> None:
        shown = await self.row(stream, 104, [-9.0, -0.25, -7.5], **AS_IDS)
        assert shown == [("token_id:104", -9.0), (f"token_id:{TRUE}", -0.25), (f"token_id:{ALSO_TRUE}", -7.5)]

    async def test_a_leading_space_keeps_them_apart(self, stream: bool) -> None:
        app = says(1, entries={1: b"true", 2: b" true"}, alternatives=[1, 2])
        [row] = (await logprobs_of(app, COMPLETIONS, logprobs=2, stream=stream))["top_logprobs"]
        assert list(row) == ["true", " true"]


@STREAMED
async def test_case_6_alternatives_are_read_behind_the_sampled_tokens(stream: bool) -> None:
    sampled = byte_tokens("“é世🙂”")
    others = [sampled[0]] * len(sampled)
    last_of_smile = sampled.index(0x82)
    others[last_of_smile] = 0x81
    app = says(*sampled, alternatives=[[token_id, other] for token_id, other in zip(sampled, others, strict=True)])

    shown = answer(await post(app, CHAT, question(CHAT, stream=stream, **with_logprobs(CHAT, 2))))

    assert shown.logprobs is not None
    assert shown.text == "“é世🙂”"
    entries = shown.logprobs["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode() == shown.text
    assert "".join(entry["token"] for entry in entries) == shown.text
    smile, frown = entries[last_of_smile]["top_logprobs"]
    assert (smile["token"], frown["token"], frown["bytes"]) == ("🙂", "🙁", [0x81])


@STREAMED
async def test_case_7_bytes_of_part_of_a_character(stream: bool) -> None:
    entries = await entries_of(says(*byte_tokens("🙂")), stream=stream)
    assert [entry["bytes"] for entry in entries] == [[240], [159], [153], [130]]
    assert [entry["token"] for entry in entries] == ["", "", "", "🙂"]


@STREAMED
class TestCases8And9ByteLevelBpe:
    """Its vocabulary is written in letters of its own, `Ġ` for a space: no such letter is ever shown."""

    @staticmethod
    def app(text: str, alternative: str) -> Litestar:
        """Answers `text`; beside each token stands the last one of `alternative`."""
        tokenizer = HfTokenizer(byte_level_bpe())
        ids, others = [tokenizer.encode(part, add_special_tokens=False) for part in (text, alternative)]
        engine = ScriptedEngine(steps(*ids, alternatives=[others[-1]]))
        return application(engine, tokenizer=tokenizer, vocab_size=tokenizer.vocab_size)

    async def test_case_8_tokens_are_readable(self, stream: bool) -> None:
        text = "是的 café,\n\t你好"
        body = {"messages": [{"role": "user", "content": "你好吗"}], "max_tokens": 40, "stream": stream}
        shown = answer(await post(self.app(text, "是"), CHAT, body | with_logprobs(CHAT, 5)))

        assert shown.text == text
        assert shown.logprobs is not None
        entries = shown.logprobs["content"]
        assert "".join(entry["token"] for entry in entries) == text
        assert bytes(byte for entry in entries for byte in entry["bytes"]).decode() == text
        for entry in entries:
            for one in (entry, *entry["top_logprobs"]):
                assert not set(one["token"]) & set("ĠĊĉæĺ¯çļĦÃ©ä½łå¥½")

    async def test_case_9_alternatives_are_read_like_the_chosen_token(self, stream: bool) -> None:
        app = self.app("Hello, world", "the dog")
        body = {"messages": [{"role": "user", "content": "Good day"}], "logprobs": True, "stream": stream}

        plain, rich = [
            answer(await post(app, CHAT, body | more)).logprobs
            for more in ({"top_logprobs": None}, {"top_logprobs": 3})
        ]

        assert plain is not None
        assert rich is not None
        assert [(entry["token"], entry["top_logprobs"]) for entry in plain["content"]][:2] == [("Hello", []), (",", [])]
        for entry in rich["content"]:
            assert [other["token"] for other in entry["top_logprobs"]] == [entry["token"], " dog"]
            assert [bytes(other["bytes"]) for other in entry["top_logprobs"]] == [entry["token"].encode(), b" dog"]


@STREAMED
async def test_case_11_special_tokens_are_told_apart(stream: bool) -> None:
    app = says(104, ROLE, alternatives=[EOS, ROLE, 104])
    shown = answer(await post(app, CHAT, question(CHAT, stream=stream, **with_logprobs(CHAT, 3))))
    assert shown.text == "h"
    assert shown.alternatives == [["h", "<|eos|>", "<|assistant|>"], ["<|assistant|>", "<|eos|>", "h"]]
    assert shown.logprobs is not None
    assert bytes(shown.logprobs["content"][1]["bytes"]) == b"<|assistant|>"


@STREAMED
@pytest.mark.parametrize("top", [{}, {"top_logprobs": 0}, {"top_logprobs": None}], ids=["absent", "0", "null"])
async def test_case_12_logprobs_without_top_logprobs(stream: bool, top: dict[str, Any]) -> None:
    entries = await entries_of(says(104, 105, alternatives=[1, 2]), stream=stream, **top, **AS_IDS)
    assert [(entry["token"], entry["top_logprobs"]) for entry in entries] == [
        ("token_id:104", []),
        ("token_id:105", []),
    ]


@STREAMED
async def test_case_13_zero_alternatives_are_not_none(stream: bool) -> None:
    found = await logprobs_of(says(104, 105, alternatives=[1, 2]), COMPLETIONS, logprobs=0, stream=stream)
    assert found == {
        "text_offset": [0, 1],
        "token_logprobs": [-0.375, -0.375],
        "tokens": ["h", "i"],
        "top_logprobs": [{"h": -0.375}, {"i": -0.375}],
    }


@STREAMED
@pytest.mark.parametrize(
    ("top", "shown"),
    [({}, []), ({"top_logprobs": 0}, []), ({"top_logprobs": 2}, ["h", "a"]), ({"top_logprobs": -1}, list("habcdef"))],
    ids=["absent", "0", "2", "all"],
)
async def test_case_15_as_many_alternatives_as_asked_for(stream: bool, top: dict[str, Any], shown: list[str]) -> None:
    """The engine has six, and the sampled token is none of them."""
    app = application(ScriptedEngine(steps(104, alternatives=b"abcdef")), max_logprobs=-1)
    [entry] = await entries_of(app, stream=stream, **top)
    assert [other["token"] for other in entry["top_logprobs"]] == shown


@STREAMED
async def test_case_18_chat_has_the_shape_of_chat(stream: bool) -> None:
    found = await logprobs_of(says(104), CHAT, logprobs=True, stream=stream)
    assert found == {"content": [{"token": "h", "logprob": -0.125, "bytes": [104], "top_logprobs": []}]}


async def test_case_19_chunks_of_completions_have_the_rows_of_their_tokens() -> None:
    app = says(*b"abcde", tokens_per_step=2, alternatives=[1])
    body = question(COMPLETIONS, stream=True, logprobs=1, return_token_ids=True)
    rows = [chunk["choices"][0] for chunk in chunks(await post(app, COMPLETIONS, body))]
    assert [row["token_ids"] for row in rows] == [[97, 98], [99, 100], [101]]
    for row in rows:
        assert list(row["logprobs"]) == ["text_offset", "token_logprobs", "tokens", "top_logprobs"]
        assert row["logprobs"]["tokens"] == [chr(token_id) for token_id in row["token_ids"]]
        assert {len(items) for items in row["logprobs"].values()} == {len(row["token_ids"])}


@STREAMED
async def test_case_25_the_end_token_counts_everywhere(stream: bool) -> None:
    app = says(104, 105, EOS, finish_reason=FinishReason.STOP)
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}

    shown = answer(await post(app, CHAT, question(CHAT, return_token_ids=True, logprobs=True, **options)))

    assert (shown.text, shown.finish_reason) == ("hi", "stop")
    assert shown.token_ids == [104, 105, EOS]
    assert shown.tokens == ["h", "i", "<|eos|>"]
    assert shown.usage is not None
    assert shown.usage["completion_tokens"] == 3
    assert shown.prompt_token_ids is not None
    turn = [*shown.prompt_token_ids, *shown.token_ids]
    following = answer(await post(app, COMPLETIONS, question(COMPLETIONS, return_token_ids=True) | {"prompt": turn}))
    assert following.prompt_token_ids == turn


@STREAMED
@pytest.mark.parametrize(
    ("path", "fields", "param", "said"),
    [
        (COMPLETIONS, {"logprobs": 25}, "logprobs", "20"),
        (COMPLETIONS, {"logprobs": -1}, "logprobs", "20"),
        (COMPLETIONS, {"logprobs": -2}, "logprobs", "20"),
        (COMPLETIONS, {"logprobs": 25, "echo": True}, "logprobs", "20"),
        (CHAT, {"logprobs": True, "top_logprobs": 25}, "top_logprobs", "20"),
        (CHAT, {"logprobs": True, "top_logprobs": -1}, "top_logprobs", "20"),
        (CHAT, {"top_logprobs": 2}, "top_logprobs", "logprobs"),
    ],
)
async def test_case_27_limits_are_told(stream: bool, path: str, fields: dict[str, Any], param: str, said: str) -> None:
    error = error_of(await post(says(104), path, question(path, stream=stream, **fields)), 400)
    assert error["param"] == param
    assert said in error["message"]


@by_endpoint
async def test_case_27_limits_of_prompt_logprobs_are_told(path: str) -> None:
    for alternatives in (25, -1, -2):
        error = error_of(await post(says(104), path, question(path, prompt_logprobs=alternatives)), 400)
        assert error["param"] == "prompt_logprobs"
        assert "20" in error["message"]
    error = error_of(await post(says(104), path, question(path, prompt_logprobs=2, stream=True)), 400)
    assert error["param"] == "prompt_logprobs"
    assert "stream" in error["message"]


@by_endpoint
@STREAMED
async def test_case_27_everything_is_allowed_by_a_cap_of_minus_1(path: str, stream: bool) -> None:
    app = application(ScriptedEngine(steps(104, alternatives=range(25))), max_logprobs=-1)
    for alternatives in (25, -1):
        shown = answer(await post(app, path, question(path, stream=stream, **with_logprobs(path, alternatives))))
        assert len(shown.alternatives[0]) == (26 if path == COMPLETIONS or alternatives == -1 else 25)
        if not stream:
            answer(await post(app, path, question(path, prompt_logprobs=alternatives)))


@STREAMED
async def test_case_28_scores_of_chosen_ids(stream: bool) -> None:
    """Beside each token those that were listed, all of them, however few alternatives were asked for."""
    engine = ScriptedEngine([TokenDelta([65], LogprobColumns(3, [65, 32, 33], [-0.5, -3.0, -4.0], [1]))])
    fields = {"max_tokens": 1, "logprobs": 1, "stream": stream}
    body = question(COMPLETIONS, "Is it A or B?", **fields, logprob_token_ids=[32, 33])

    logprobs = answer(await post(application(engine), COMPLETIONS, body)).logprobs

    assert logprobs is not None
    assert [list(row.items()) for row in logprobs["top_logprobs"]] == [[("A", -0.5), (" ", -3.0), ("!", -4.0)]]
    assert engine.submitted[0].sampling.logprob_token_ids == [32, 33]
    error = error_of(await post(application(engine), COMPLETIONS, body | {"logprob_token_ids": []}), 400)
    assert error["param"] == "logprob_token_ids"


@STREAMED
@pytest.mark.parametrize(
    ("skip", "text", "offsets"),
    [
        (True, "世 ok end", [0, 0, 0, 1, 2, 3, 4, 4, 5, 6, 7]),
        (False, "世 ok<|assistant|> end", [0, 0, 0, 1, 2, 3, 4, 17, 18, 19, 20]),
    ],
    ids=["hidden", "shown"],
)
async def test_case_29_offsets_are_places_in_the_text(stream: bool, skip: bool, text: str, offsets: list[int]) -> None:
    app = says(*byte_tokens("世 ok"), ROLE, *b" end")
    body = question(COMPLETIONS, stream=stream, logprobs=0, skip_special_tokens=skip)

    for field in ({}, AS_IDS):
        shown = answer(await post(app, COMPLETIONS, body | field))
        assert shown.text == text
        assert shown.logprobs is not None
        assert shown.logprobs["text_offset"] == offsets


async def test_case_38_offsets_run_on_over_chunks() -> None:
    body = question(COMPLETIONS, "abc", logprobs=1, echo=False, stream=True)
    found = chunks(await post(says(WORD, *b"xy", WORD), COMPLETIONS, body))
    assert [chunk["choices"][0]["logprobs"]["text_offset"] for chunk in found] == [[0], [5], [6], [7]]


PIECES = {1: b"UV", 2: b"W", 3: b"XY", 4: b"Z", 5: b"!"}


@by_endpoint
@STREAMED
async def test_case_40_no_part_of_a_stop_string_is_shown(path: str, stream: bool) -> None:
    app = says(1, 2, 3, 4, 5, entries=PIECES)
    shown = answer(await post(app, path, question(path, stop=["UVWXYZ"], stream=stream)))
    assert (shown.text, shown.finish_reason, shown.stop_reason) == ("", "stop", "UVWXYZ")


@by_endpoint
@STREAMED
async def test_case_40_nothing_held_is_lost(path: str, stream: bool) -> None:
    app = says(1, 2, 3, 5, entries=PIECES)
    shown = answer(await post(app, path, question(path, stop=["UVWXYZ", "!?"], stream=stream)))
    assert (shown.text, shown.finish_reason, shown.stop_reason) == ("UVWXY!", "length", None)


@by_endpoint
async def test_case_41_only_what_can_become_a_stop_string_is_held(path: str) -> None:
    app = says(1, 2, 3, entries={1: b"Hello", 2: b" there", 3: b"!"})
    found = chunks(await post(app, path, question(path, stop=["ZZZZZZZZZZ"], stream=True)))
    contents = [
        choice["text"] if path == COMPLETIONS else choice["delta"]["content"]
        for chunk in found
        for choice in chunk["choices"]
        if "role" not in choice.get("delta", {})
    ]
    assert contents == ["Hello", " there", "!"]


@by_endpoint
async def test_case_41_chunks_without_anything_are_not_sent(path: str) -> None:
    app = says(*b"a stopped", *byte_tokens("🙂"))
    found = chunks(await post(app, path, question(path, stop=["stop!"], stream=True)))
    texts = [
        choice["text"] if path == COMPLETIONS else choice["delta"]["content"]
        for choice in (chunk["choices"][0] for chunk in found)
        if "role" not in choice.get("delta", {})
    ]
    assert texts == ["a", " ", "stopp", "e", "d", "🙂"]


@by_endpoint
@STREAMED
async def test_case_42_the_token_that_completes_a_stop_string(path: str, stream: bool) -> None:
    """Text is cut before the stop string; ids, rows and usage end with the token that completes it, as a whole."""
    app = says(1, 2, 3, 4, entries={1: b"1 2 ", 2: b"3 ", 3: b"45", 4: b" 6"}, tokens_per_step=2)
    fields = {"stop": ["4"], "max_tokens": 20, "return_token_ids": True, "include_stop_str_in_output": False}
    options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}

    shown = answer(await post(app, path, question(path, "count", **fields, **options, **with_logprobs(path, 0))))

    assert (shown.text, shown.finish_reason, shown.stop_reason) == ("1 2 3 ", "stop", "4")
    assert shown.token_ids == [1, 2, 3]
    assert shown.tokens == ["1 2 ", "3 ", "45"]
    assert shown.usage is not None
    assert shown.usage["completion_tokens"] == 3


async def test_case_43_the_end_token_in_a_stream() -> None:
    app = says(104, EOS, finish_reason=FinishReason.STOP)
    [*_, last] = chunks(await post(app, CHAT, question(CHAT, stream=True, logprobs=True)))
    [choice] = last["choices"]
    assert choice["delta"] == {"content": ""}
    assert choice["finish_reason"] == "stop"
    [entry] = choice["logprobs"]["content"]
    assert entry["token"] == "<|eos|>"


@by_endpoint
@STREAMED
async def test_case_49_three_choices_are_three(path: str, stream: bool) -> None:
    app = application(ScriptedEngine(steps(104), steps(105), steps(106)))
    body = question(path, n=3, max_tokens=2, temperature=1, stream=stream)
    assert [one.text for one in answers(await post(app, path, body))] == ["h", "i", "j"]


@by_endpoint
@STREAMED
async def test_case_49_what_is_not_served_is_refused(path: str, stream: bool) -> None:
    engine = ScriptedEngine(steps(104))
    body = question(path, best_of=3, max_tokens=2, temperature=1, stream=stream)
    error = error_of(await post(application(engine), path, body), 400)
    assert error["param"] == "best_of"
    assert "best_of " in error["message"]
    assert not engine.submitted


@by_endpoint
async def test_case_54_client_gone(path: str) -> None:
    """After three chunks of a long stream; during an answer that is not streamed."""
    script: list[Step] = [TokenDelta([104])] * 4
    for stream in (True, False):
        engine = ScriptedEngine([*script, asyncio.Event()])
        app = application(engine)
        exchange = Exchange(app, path, question(path, max_tokens=2000, stream=stream))
        await engine.next_submitted()
        if stream:
            await exchange.until(lambda exchange: exchange.received.count(b"data: ") >= 3)
        exchange.leave()
        await asyncio.wait_for(engine.next_aborted(), 1.0)
        await exchange.end()
        assert len(engine.aborted) == 1
        assert engine.running == 0
        assert await counted(app) == {"abort": 1}


async def test_case_54_client_of_several_prompts_gone() -> None:
    """One abort for each of four. More of it in test_several_prompts_end."""
    for stream in (True, False):
        engine = ScriptedEngine([TokenDelta([104]), asyncio.Event()])
        app = application(engine)
        body = {"prompt": ["a", "b", "c", "d"], "max_tokens": 2000, "request_id": "x", "stream": stream}
        exchange = Exchange(app, COMPLETIONS, body)
        for _ in range(4):
            await engine.next_submitted()
        exchange.leave()
        async with asyncio.timeout(1.0):
            aborted = [await engine.next_aborted() for _ in range(4)]
        await exchange.end()
        assert sorted(aborted) == sorted(engine.aborted) == [f"cmpl-x-{index}" for index in range(4)]
        assert engine.running == 0
        assert await counted(app) == {"abort": 4}
