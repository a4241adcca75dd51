"""Northbound starts the engine and ends it. The flag is off, so that requests ask for placeholders themselves.

Its answers are compared with those of vLLM's own frontend here, both with an engine that has answered nothing else.
"""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.real_engine.answers import Json, Recording, joined, record, whole
from tests.real_engine.checks import Serves, stops
from tests.real_engine.deviations import DEVIATIONS, Case, reasons
from tests.real_engine.openai_checks import ServesOpenAIClient
from tests.real_engine.parity import anonymous, differences, stream_shape
from tests.real_engine.questions import QUESTIONS, Question
from tests.real_engine.servers import Home, Server, managed, running
from tests.real_engine.vocabulary import Vocabulary

each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)


@pytest.fixture(scope="module")
def server(home: Home, reference: Recording) -> Iterator[Server]:
    # the reference comes first: two engines do not fit on a small machine
    with running(managed(home)) as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def recording(server: Server) -> Recording:
    """Made before anything else is asked."""
    return record(server.url)


class TestManaged(ServesOpenAIClient, Serves):
    to_show_ids: ClassVar[Json] = {"return_tokens_as_token_ids": True}

    @each_question
    def test_answers_as_vllm_does(
        self, recording: Recording, reference: Recording, vocabulary: Vocabulary, question: Question
    ) -> None:
        (ours, _), (theirs, _) = recording[question.name], reference[question.name]
        case = Case(question, ours, vocabulary)

        unmeant = [each for each in differences(anonymous(ours), anonymous(theirs)) if not reasons(each, case)]

        assert not unmeant, "\n".join(map(str, unmeant))

    @each_question
    def test_streams_what_it_answers(self, recording: Recording, question: Question) -> None:
        ours, chunks = recording[question.name]

        assert joined(chunks) == whole(ours)

    @each_question
    def test_streams_in_the_shape_that_vllm_does(
        self, recording: Recording, reference: Recording, question: Question
    ) -> None:
        (_, ours), (_, theirs) = recording[question.name], reference[question.name]

        assert stream_shape(ours) == stream_shape(theirs)

    @pytest.mark.parametrize("deviation", DEVIATIONS)
    def test_every_deviation_is_real(
        self, recording: Recording, reference: Recording, vocabulary: Vocabulary, deviation: str
    ) -> None:
        accounted = [
            difference
            for question in QUESTIONS
            for difference in differences(recording[question.name][0], reference[question.name][0])
            if deviation in reasons(difference, Case(question, recording[question.name][0], vocabulary))
        ]

        assert accounted

    def test_stops_by_sigterm(self, server: Server) -> None:
        stops(server)
