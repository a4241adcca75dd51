"""What every way in must serve."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import pytest

from tests.real_engine.answers import Answer, Asker, Json, joined, whole
from tests.real_engine.processes import settled
from tests.real_engine.questions import CHAT_PETS, CHAT_PETS_BY_FIVE, ECHOED_HELLO, Question, completion
from tests.real_engine.servers import MODEL, Server
from tests.real_engine.vocabulary import PLACEHOLDER, Vocabulary, as_text, token_id

COUNTING = completion("counting", "1, 2, 3, 4,", max_tokens=24, logprobs=0, return_token_ids=True)

both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


@pytest.mark.timeout(900)  # the first test of a module waits for the engines, and for all that is asked beforehand
class Serves:
    """The checks of one way in. Its module has the fixture `server`."""

    to_show_ids: ClassVar[Json] = {}
    """What a request to this server says for placeholders: nothing where the flag is on."""
    to_show_texts: ClassVar[Json] = {}
    models: ClassVar[list[str]] = [MODEL]

    def test_the_model_is_listed(self, asker: Asker) -> None:
        assert [model["id"] for model in asker.get("/v1/models")["data"]] == self.models

    @both_ways
    def test_completion_shows_ids(self, asker: Asker, vocabulary: Vocabulary, streamed: bool) -> None:
        answer = answered(asker, ECHOED_HELLO.but(**self.to_show_ids), streamed)

        assert answer.text.startswith(ECHOED_HELLO.body["prompt"])
        ids = [token_id(token) for token in answer.tokens]
        assert ids[: answer.usage[0]] == vocabulary.encode(ECHOED_HELLO.body["prompt"])
        assert vocabulary.decode(ids) == answer.text
        assert answer.alternatives[0] == []
        assert answer.logprobs[0] is None
        for token, logprob, alternatives in list(rows(answer))[1:]:
            assert alternatives[0] == (token, logprob)
            assert len({token_id(alternative) for alternative, _ in alternatives}) in (1, 2)

    @both_ways
    def test_chat_shows_ids(self, asker: Asker, vocabulary: Vocabulary, streamed: bool) -> None:
        answer = answered(asker, CHAT_PETS.but(**self.to_show_ids), streamed)

        ids = [token_id(token) for token in answer.tokens]
        assert len(ids) == answer.usage[1] <= 8
        assert vocabulary.decode(ids) == answer.text
        assert [bytes(each) for each in answer.bytes] == [vocabulary.bytes_of(each) for each in ids]
        for token, logprob, alternatives in rows(answer):
            assert alternatives[0] == (token, logprob)
            assert len({token_id(alternative) for alternative, _ in alternatives}) == 2

    @both_ways
    @pytest.mark.parametrize("question", [ECHOED_HELLO, CHAT_PETS], ids=lambda question: question.name)
    def test_texts_are_shown_instead(self, asker: Asker, question: Question, streamed: bool) -> None:
        answer = answered(asker, question.but(**self.to_show_texts), streamed)

        assert not any(token.startswith(PLACEHOLDER) for token in answer.tokens)
        assert "".join(answer.tokens).removesuffix("<|im_end|>") == answer.text

    @both_ways
    def test_bytes_join_to_the_text(self, asker: Asker, vocabulary: Vocabulary, streamed: bool) -> None:
        pets = CHAT_PETS_BY_FIVE.but(return_token_ids=True)
        as_texts = answered(asker, pets.but(**self.to_show_texts), streamed)
        as_ids = answered(asker, pets.but(**self.to_show_ids), streamed)

        assert as_text(b"".join(map(bytes, as_texts.bytes))) == as_texts.text
        assert {"🐱", "🐶", "🎉"} & set(as_texts.text)
        assert "" in as_texts.tokens
        # the display changes strings and nothing else
        assert [token_id(token) for token in as_ids.tokens] == as_texts.token_ids == as_ids.token_ids
        assert (as_ids.text, as_ids.bytes, as_ids.logprobs) == (as_texts.text, as_texts.bytes, as_texts.logprobs)
        for texts, ids in zip(as_texts.alternatives, as_ids.alternatives, strict=True):
            assert len(ids) == 5
            assert [logprob for _, logprob in texts] == [logprob for _, logprob in ids]

    @pytest.mark.parametrize("question", [ECHOED_HELLO, CHAT_PETS, COUNTING], ids=lambda question: question.name)
    def test_a_streamed_answer_is_the_whole_one(self, asker: Asker, question: Question) -> None:
        at_once, in_chunks = answered(asker, question, False), answered(asker, question, True)

        assert in_chunks == at_once

    @both_ways
    def test_a_stop_string_ends_the_text(self, asker: Asker, vocabulary: Vocabulary, streamed: bool) -> None:
        unstopped = answered(asker, COUNTING, False)
        before, stop, after = unstopped.text.partition("7")
        assert after

        answer = answered(asker, COUNTING.but(stop=["zebra", f"{before[-2:]}{stop}"]), streamed)

        assert answer.text == before[:-2]
        assert (answer.finish_reason, answer.stop_reason) == ("stop", before[-2:] + stop)
        # the token that completes the stop string is the last
        assert vocabulary.decode(answer.token_ids) == before + stop
        assert answer.token_ids == unstopped.token_ids[: len(answer.token_ids)]
        assert len(answer.tokens) == len(answer.token_ids) == answer.usage[1]


def answered(asker: Asker, question: Question, streamed: bool) -> Answer:
    return joined(asker.ask_streamed(question)) if streamed else whole(asker.ask(question))


def rows(answer: Answer) -> Iterable[tuple[str, float | None, Sequence[tuple[str, float]]]]:
    return zip(answer.tokens, answer.logprobs, answer.alternatives, strict=True)


def stops(server: Server) -> None:
    """By SIGTERM, with success and nothing left running."""
    assert server.terminate() == 0, server.frontend.tail()
    assert settled(server.frontend.running, []) == []
