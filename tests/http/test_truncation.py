"""`truncate_prompt_tokens`: how much of a prompt the engine sees, and what of it is shown."""

from typing import Any

import pytest
from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.logprobs import LogprobColumns
from tests.http.answers import answer, answers, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question
from tests.http.vocabulary import byte_tokens

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
CONTEXT = 16
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


async def seen(path: str, text: str, **fields: Any) -> str:
    """What of the prompt reaches the engine; 2 tokens more for the roles around a conversation's message."""
    engine = ScriptedEngine(steps(104), max_model_len=CONTEXT)
    found = answer(await post(application(engine), path, question(path, text, **fields)))
    [request] = engine.submitted
    assert found.usage is not None
    assert found.usage["prompt_tokens"] == len(request.prompt_token_ids)
    shown = {258: "<", 259: ">"}
    return "".join([shown.get(token_id) or chr(token_id) for token_id in request.prompt_token_ids])


async def test_of_a_text() -> None:
    assert await seen(COMPLETIONS, "abcdef", truncate_prompt_tokens=4) == "cdef"
    assert await seen(COMPLETIONS, "abcdef", truncate_prompt_tokens=4, truncation_side="left") == "cdef"
    assert await seen(COMPLETIONS, "abcdef", truncate_prompt_tokens=4, truncation_side="right") == "abcd"


async def test_of_token_ids() -> None:
    ids = {"prompt": list(b"abcdef"), "truncate_prompt_tokens": 4}
    assert await seen(COMPLETIONS, "", **ids) == "cdef"
    assert await seen(COMPLETIONS, "", **ids, truncation_side="right") == "abcd"


async def test_of_a_conversation() -> None:
    assert await seen(CHAT, "abcdef", truncate_prompt_tokens=4) == "def>"
    assert await seen(CHAT, "abcdef", truncate_prompt_tokens=4, truncation_side="right") == "<abc"


async def test_of_each_prompt() -> None:
    engine = ScriptedEngine(steps(104))
    body = {"prompt": ["abc", "d", "efgh"], "truncate_prompt_tokens": 2}
    await post(application(engine), COMPLETIONS, body)
    assert [bytes(one.prompt_token_ids) for one in engine.submitted] == [b"bc", b"d", b"gh"]


@by_endpoint
async def test_what_is_short_enough_stays_whole(path: str) -> None:
    whole = await seen(path, "abc")
    for tokens in (len(whole), len(whole) + 1, CONTEXT, -1):
        for side in (None, "left", "right"):
            assert await seen(path, "abc", truncate_prompt_tokens=tokens, truncation_side=side) == whole


@by_endpoint
async def test_a_side_alone_cuts_nothing(path: str) -> None:
    assert await seen(path, "abcdef", truncation_side="right") == await seen(path, "abcdef")


@by_endpoint
@pytest.mark.parametrize("fields", [{}, {"max_tokens": 3}], ids=["default", "three"])
async def test_minus_one_leaves_room_for_an_output(path: str, fields: dict[str, Any]) -> None:
    engine = ScriptedEngine(steps(104), max_model_len=CONTEXT)
    app = application(engine)
    for side in (None, "right"):
        body = question(path, ALPHABET, truncate_prompt_tokens=-1, truncation_side=side, **fields)
        assert answer(await post(app, path, body)).text == "h"
        assert len(engine.submitted[-1].prompt_token_ids) == CONTEXT - 1
        assert engine.submitted[-1].sampling.max_tokens == 1


@by_endpoint
async def test_how_much_may_follow_is_counted_from_what_is_left(path: str) -> None:
    engine = ScriptedEngine(steps(104), max_model_len=CONTEXT)
    body = question(path, ALPHABET, truncate_prompt_tokens=4, max_tokens=CONTEXT)
    await post(application(engine), path, body)
    assert engine.submitted[0].sampling.max_tokens == CONTEXT - 4


async def test_the_ids_that_are_returned() -> None:
    app = application(ScriptedEngine(steps(104)))
    for path, ids in ((COMPLETIONS, b"ef"), (CHAT, [102, 259])):
        body = question(path, "abcdef", truncate_prompt_tokens=2, return_token_ids=True)
        for stream in (False, True):
            assert answer(await post(app, path, body | {"stream": stream})).prompt_token_ids == list(ids)


class TestEcho:
    """What is echoed is what the engine saw."""

    @STREAMED
    @pytest.mark.parametrize("side", ["left", "right"])
    @pytest.mark.parametrize("prompt", ["abcdef", list(b"abcdef")], ids=["text", "ids"])
    async def test_text_and_rows(self, prompt: str | list[int], side: str, stream: bool) -> None:
        first, *others = steps(*b"hi", alternatives=b"~")
        ids = list(b"def" if side == "left" else b"abc")
        columns = LogprobColumns(2, [ids[1], 126, ids[2], 126], [-0.5, -0.25] * 2, [2, 2])
        app = application(ScriptedEngine([replace(first, prompt_logprobs=columns), *others]))
        body = {"prompt": prompt, "truncate_prompt_tokens": 3, "truncation_side": side, "echo": True, "logprobs": 1}
        shown = answer(await post(app, COMPLETIONS, body | {"stream": stream}))
        kept = "def" if side == "left" else "abc"
        assert shown.text == kept + "hi"
        assert shown.tokens == list(kept + "hi")
        assert shown.logprobs is not None
        assert shown.logprobs["text_offset"] == [0, 1, 2, 3, 4]
        assert shown.logprobs["token_logprobs"] == [None, -0.5, -0.5, -0.25, -0.25]

    @STREAMED
    async def test_that_starts_inside_a_character(self, stream: bool) -> None:
        app = application(ScriptedEngine(steps(104)))
        body = {"prompt": "xé!", "truncate_prompt_tokens": 2, "echo": True, "stream": stream}
        assert answer(await post(app, COMPLETIONS, body)).text == "\ufffd!h"

    @STREAMED
    async def test_that_ends_inside_a_character(self, stream: bool) -> None:
        """Contract 2.4: the output completes it."""
        euro = byte_tokens("€")
        app = application(ScriptedEngine(steps(euro[2], 104)))
        cut = {"truncate_prompt_tokens": 3, "truncation_side": "right", "stream": stream}
        body = {"prompt": "x€"} | cut
        assert answer(await post(app, COMPLETIONS, body)).text == "€h"
        assert answer(await post(app, COMPLETIONS, body | {"echo": True})).text == "x€h"

    @STREAMED
    async def test_prompts_alone(self, stream: bool) -> None:
        app = application(ScriptedEngine(steps(104)))
        body = {"prompt": ["abc", "d"], "truncate_prompt_tokens": 2, "echo": True, "max_tokens": 0, "stream": stream}
        assert [one.text for one in answers(await post(app, COMPLETIONS, body))] == ["bc", "d"]


class TestRefused:
    @by_endpoint
    @STREAMED
    async def test_more_than_the_context(self, path: str, stream: bool) -> None:
        engine = ScriptedEngine(steps(104), max_model_len=CONTEXT)
        app = application(engine)
        body = question(path, "a", truncate_prompt_tokens=CONTEXT + 1, stream=stream)
        error = error_of(await post(app, path, body), 400)
        assert error["param"] == "truncate_prompt_tokens"
        assert "17" in error["message"]
        assert "16" in error["message"]
        assert not engine.submitted

    @by_endpoint
    @STREAMED
    @pytest.mark.parametrize("value", [-2, 2**63, "4", 1.5, True])
    async def test_what_is_no_number_of_tokens(self, path: str, stream: bool, value: Any) -> None:
        engine = ScriptedEngine(steps(104))
        body = question(path, truncate_prompt_tokens=value, stream=stream)
        assert error_of(await post(application(engine), path, body), 400)["param"] == "truncate_prompt_tokens"
        assert not engine.submitted

    @by_endpoint
    @STREAMED
    async def test_a_prompt_of_which_nothing_is_left(self, path: str, stream: bool) -> None:
        engine = ScriptedEngine(steps(104))
        body = question(path, truncate_prompt_tokens=0, stream=stream)
        error = error_of(await post(application(engine), path, body), 400)
        assert error["param"] == "truncate_prompt_tokens"
        assert not engine.submitted

    @by_endpoint
    async def test_a_prompt_that_leaves_no_room(self, path: str) -> None:
        """As many tokens as the context has are a prompt without an output."""
        engine = ScriptedEngine(steps(104), max_model_len=CONTEXT)
        body = question(path, ALPHABET, truncate_prompt_tokens=CONTEXT)
        error = error_of(await post(application(engine), path, body), 400)
        assert error["param"] == ("prompt" if path == COMPLETIONS else "messages")
        assert not engine.submitted
