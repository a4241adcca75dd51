"""All that one server answers, to be compared."""

from collections.abc import Mapping
from typing import NamedTuple

from tests.real_engine.answers import Asker, Json, assembled
from tests.real_engine.lm_eval_runs import Runs, evaluate
from tests.real_engine.openai_calls import Calls, Refusals, call, refusals
from tests.real_engine.questions import QUESTIONS
from tests.real_engine.servers import Home


class Recorded(NamedTuple):
    """One server's answers to a question."""

    whole: Json
    chunks: list[Json] | None
    """Of the streamed answer; None where the question does not stream."""

    @property
    def bodies(self) -> list[Json]:
        """The whole answer and, if there are any, the chunks as one."""
        return [self.whole] if self.chunks is None else [self.whole, assembled(self.chunks)]


Recording = Mapping[str, Recorded]
"""For each question by name."""


class Records(NamedTuple):
    """What one server answers to everyone who asks it."""

    answers: Recording
    calls: Calls
    refusals: Refusals
    runs: Runs


def record_all(home: Home, url: str) -> Records:
    """The engine has answered nothing before."""
    return Records(record(url), call(url), refusals(url), evaluate(home, url))


def record(url: str) -> Recording:
    """The answers to all questions, one at a time, always in the same order."""
    asker = Asker(url)
    try:
        return {
            question.name: Recorded(
                asker.ask(question), asker.ask_streamed(question) if question.is_streamable else None
            )
            for question in QUESTIONS
        }
    finally:
        asker.close()


def record_ids(url: str) -> Mapping[str, Json]:
    """To all questions by name, the whole answers with ids for tokens."""
    asker = Asker(url)
    try:
        return {
            question.name: asker.ask(question.but(return_token_ids=True, return_tokens_as_token_ids=True))
            for question in QUESTIONS
        }
    finally:
        asker.close()
