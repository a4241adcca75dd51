"""Northbound starts the engine and ends it. The flag is off, so that requests ask for placeholders themselves.

Its answers are compared with those of vLLM's own frontend here, both with an engine that has answered nothing else.
"""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.real_engine.answers import Json, each_choice
from tests.real_engine.checks import Serves, stops
from tests.real_engine.client_checks import ServesClientsAlike
from tests.real_engine.comparison import COMPARISON, Comparison, compare
from tests.real_engine.deviations import DEVIATIONS
from tests.real_engine.distillation_checks import ServesDistillation
from tests.real_engine.expected import as_far_as, expected_answer
from tests.real_engine.lm_eval_runs import SCORED
from tests.real_engine.logprob_checks import ServesLogprobs
from tests.real_engine.openai_checks import ServesOpenAIClient
from tests.real_engine.openai_failure_checks import FailsAsOpenAIClient
from tests.real_engine.parity import differences, stream_shapes
from tests.real_engine.questions import QUESTIONS, Question
from tests.real_engine.recording import Records, record_all, record_ids
from tests.real_engine.servers import API_KEY, Home, Server, managed, running
from tests.real_engine.vocabulary import Vocabulary

each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
each_streamed = pytest.mark.parametrize(
    "question", [each for each in QUESTIONS if each.is_streamable], ids=lambda question: question.name
)


@pytest.fixture(scope="module")
def server(home: Home, reference: Records) -> Iterator[Server]:
    # the reference comes first: two engines do not fit on a small machine
    with running(managed(home, "--api-key", API_KEY)) as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def records(pytestconfig: pytest.Config, home: Home, server: Server, reference: Records) -> Records:
    """Made before anything else is asked."""
    records = record_all(home, server.url)
    pytestconfig.stash[SCORED] = records.runs, reference.runs
    return records


@pytest.fixture(scope="module")
def comparison(
    pytestconfig: pytest.Config, server: Server, records: Records, reference: Records, vocabulary: Vocabulary
) -> Comparison:
    comparison = compare(records.answers, reference.answers, record_ids(server.url), vocabulary)
    pytestconfig.stash[COMPARISON] = comparison
    return comparison


class TestManaged(
    ServesClientsAlike, ServesOpenAIClient, FailsAsOpenAIClient, ServesDistillation, ServesLogprobs, Serves
):
    to_show_ids: ClassVar[Json] = {"return_tokens_as_token_ids": True}

    @each_question
    def test_answers_as_vllm_does(self, comparison: Comparison, question: Question) -> None:
        for compared in comparison[question.name]:
            assert not compared.unmeant, "\n".join(map(str, compared.unmeant))

    @each_question
    def test_answers_as_the_rules_say(self, comparison: Comparison, question: Question) -> None:
        for compared in comparison[question.name]:
            expected, ours = as_far_as(expected_answer(compared.case), compared.case.ours)

            wrong = list(differences(ours, expected))

            assert not wrong, "\n".join(map(str, wrong))

    @each_streamed
    def test_streams_what_it_answers(self, comparison: Comparison, question: Question) -> None:
        whole, in_chunks = comparison[question.name]

        assert each_choice(in_chunks.case.ours) == each_choice(whole.case.ours)

    @each_streamed
    def test_streams_in_the_shape_that_vllm_does(
        self, records: Records, reference: Records, question: Question
    ) -> None:
        ours, theirs = records.answers[question.name].chunks, reference.answers[question.name].chunks
        assert ours
        assert theirs

        our_shapes, their_shapes = stream_shapes(ours), stream_shapes(theirs)

        assert our_shapes.keys() == their_shapes.keys()
        for index, shape in our_shapes.items():
            assert shape.is_like(their_shapes[index]), f"ours {shape}\ntheirs {their_shapes[index]}"

    @pytest.mark.parametrize("deviation", DEVIATIONS)
    def test_every_deviation_is_real(self, comparison: Comparison, deviation: str) -> None:
        assert any(
            deviation in reasons
            for of_question in comparison.values()
            for compared in of_question
            for _, reasons in compared.differences
        )

    def test_stops_by_sigterm(self, server: Server) -> None:
        stops(server)
