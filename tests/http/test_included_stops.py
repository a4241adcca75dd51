"""`include_stop_str_in_output`: what stops an answer is part of its text."""

from typing import Any

import pytest

from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.generation import FinishReason
from tests.fakes.tokenizers import byte_level_bpe
from tests.http.answers import answer, chunks
from tests.http.serving import COMPLETIONS, application, by_endpoint, post, question, with_logprobs
from tests.http.vocabulary import EOS, ROLE

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
INCLUDED: dict[str, Any] = {"include_stop_str_in_output": True}


class TestStrings:
    @by_endpoint
    @STREAMED
    @pytest.mark.parametrize("per_step", [1, 2, 5])
    async def test_is_shown_and_nothing_behind_it(self, path: str, stream: bool, per_step: int) -> None:
        app = application(ScriptedEngine(steps(*b"a END b", tokens_per_step=per_step)))
        body = question(path, stop="END", stream=stream, return_token_ids=True, **INCLUDED)
        shown = answer(await post(app, path, body))
        assert (shown.text, shown.finish_reason, shown.stop_reason) == ("a END", "stop", "END")
        assert shown.token_ids == list(b"a END")

    @by_endpoint
    async def test_false_and_null_leave_it_out(self, path: str) -> None:
        app = application(ScriptedEngine(steps(*b"a END b")))
        for value in (None, False):
            body = question(path, stop="END", include_stop_str_in_output=value)
            assert answer(await post(app, path, body)).text == "a "

    @STREAMED
    async def test_a_token_that_goes_on_behind_it_is_cut_in_the_text_alone(self, stream: bool) -> None:
        tokenizer = HfTokenizer(byte_level_bpe())
        ids = tokenizer.encode("Hello there", add_special_tokens=False)
        app = application(ScriptedEngine(steps(*ids)), tokenizer=tokenizer, vocab_size=600)
        body = {"prompt": "x", "stop": "Hel", "logprobs": 0, "stream": stream} | INCLUDED
        shown = answer(await post(app, COMPLETIONS, body))
        assert shown.text == "Hel"
        assert "".join(shown.tokens).startswith("Hel")
        assert len("".join(shown.tokens)) > 3

    @by_endpoint
    async def test_nothing_is_held_back(self, path: str) -> None:
        """What may become the string is shown either way."""
        app = application(ScriptedEngine(steps(*b"aENDE")))
        stream = chunks(await post(app, path, question(path, stop="ENDE!", stream=True, **INCLUDED)))
        if path == COMPLETIONS:
            texts = [chunk["choices"][0]["text"] for chunk in stream]
        else:
            texts = [chunk["choices"][0]["delta"]["content"] for chunk in stream[1:]]
        assert texts == ["a", "E", "N", "D", "E"]

    @by_endpoint
    @STREAMED
    async def test_the_one_that_completes_first_wins(self, path: str, stream: bool) -> None:
        app = application(ScriptedEngine(steps(*b"xabcdef", tokens_per_step=7)))
        shown = answer(await post(app, path, question(path, stop=["abcdef", "cd"], stream=stream, **INCLUDED)))
        assert (shown.text, shown.stop_reason) == ("xabcd", "cd")

    @by_endpoint
    @STREAMED
    async def test_not_before_min_tokens(self, path: str, stream: bool) -> None:
        app = application(ScriptedEngine(steps(*b"a!b!c")))
        shown = answer(await post(app, path, question(path, stop="!", min_tokens=2, stream=stream, **INCLUDED)))
        assert (shown.text, shown.stop_reason) == ("a!b!", "!")

    @by_endpoint
    @STREAMED
    async def test_that_never_comes(self, path: str, stream: bool) -> None:
        app = application(ScriptedEngine(steps(*b"aEN")))
        shown = answer(await post(app, path, question(path, stop="END", stream=stream, **INCLUDED)))
        assert (shown.text, shown.finish_reason, shown.stop_reason) == ("aEN", "length", None)


class TestTokens:
    @staticmethod
    async def shown(path: str, *token_ids: int, **fields: Any) -> str:
        stop_reason = None if token_ids[-1] == EOS else token_ids[-1]
        script = steps(*token_ids, finish_reason=FinishReason.STOP, stop_reason=stop_reason)
        body = question(path, return_token_ids=True, **fields, **with_logprobs(path, 0))
        found = answer(await post(application(ScriptedEngine(script)), path, body))
        assert (found.finish_reason, found.stop_reason) == ("stop", stop_reason)
        assert found.token_ids == list(token_ids)
        assert len(found.tokens) == len(token_ids)
        return found.text

    @by_endpoint
    @STREAMED
    async def test_a_token_of_text(self, path: str, stream: bool) -> None:
        assert await self.shown(path, *b"ab.", stop_token_ids=[46], stream=stream) == "ab"
        assert await self.shown(path, *b"ab.", stop_token_ids=[46], stream=stream, **INCLUDED) == "ab."

    @by_endpoint
    @STREAMED
    @pytest.mark.parametrize(("stop", "text"), [(EOS, "<|eos|>"), (ROLE, "<|assistant|>")])
    async def test_a_special_token(self, path: str, stream: bool, stop: int, text: str) -> None:
        for hides in (None, True):
            assert await self.shown(path, 97, stop, stream=stream, skip_special_tokens=hides, **INCLUDED) == "a"
        assert await self.shown(path, 97, stop, stream=stream, skip_special_tokens=False, **INCLUDED) == "a" + text
        assert await self.shown(path, 97, stop, stream=stream, skip_special_tokens=False) == "a"

    @by_endpoint
    @STREAMED
    async def test_one_that_completes_a_character(self, path: str, stream: bool) -> None:
        lead, tail = "é".encode()
        assert await self.shown(path, lead, tail, stop_token_ids=[tail], stream=stream, **INCLUDED) == "é"
