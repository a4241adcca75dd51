"""Both answers to one case, and what else Northbound was asked to see whether a difference is meant."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from tests.parity.answers import Answer, Json
from tests.parity.case import Case
from tests.parity.comparison import anonymous, assembled
from tests.parity.servers import SHOW_IDS
from tests.real_engine.case import Case as ReadCase
from tests.real_engine.questions import Question
from tests.real_engine.vocabulary import Vocabulary


class Probes(Struct, kw_only=True):
    """Northbound's answers to requests that are like a case."""

    as_ids: Answer | None
    """In one piece, with ids for tokens; None where there is nothing to compare with it."""
    meant: Answer | None
    """With values of the right type in place of those that could be taken for them, or without nulls."""


class Pair:
    def __init__(self, case: Case, ours: Answer, theirs: Answer, probes: Probes, vocabulary: Vocabulary) -> None:
        self.case = case
        self.ours = ours
        self.theirs = theirs
        self.probes = probes
        self.vocabulary = vocabulary

    @property
    def asked(self) -> Mapping[str, Any]:
        return self.case.body

    @cached_property
    def read(self) -> ReadCase | None:
        """How the tokens of both answers read; None where one of them is none."""
        if self.probes.as_ids is None or self.ours.error or self.probes.as_ids.error:
            return None
        body = dict(self.asked)
        if self.case.is_chat:
            body.pop("echo", None)  # the rows have no part in it
        if body.get("return_tokens_as_token_ids") is None:
            body["return_tokens_as_token_ids"] = self.case.server in SHOW_IDS
        question = Question(self.case.name, self.case.path, body)
        ours, theirs = whole(self.ours), whole(self.theirs)
        return ReadCase(question, ours, theirs, self.probes.as_ids.body, self.vocabulary)


def whole(answer: Answer) -> Json:
    told: Json = anonymous(answer.body) if answer.chunks is None else assembled(answer.chunks)
    return told


def as_ids(case: Case) -> Case:
    """The same, with ids for tokens, and in one piece."""
    body = {name: value for name, value in case.body.items() if name not in ("stream", "stream_options")}
    return case._replace(body={**body, "return_token_ids": True, "return_tokens_as_token_ids": True})


def meant(case: Case) -> Case | None:
    """With values of the right type, and without nulls; None if it is so already."""
    if case.meant is not None:
        return case._replace(body=case.meant)
    body = _without_nulls(case.body)
    return None if body == case.body else case._replace(body=body)


def _without_nulls(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _without_nulls(value) for name, value in told.items() if value is not None}
    return [_without_nulls(each) for each in told] if isinstance(told, list) else told
