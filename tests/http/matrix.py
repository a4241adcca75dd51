"""The rule's whole matrix, as requests and what must be shown for each; over whatever transport a test has."""

from itertools import product
from typing import Any, NamedTuple

from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from domain.logprobs import LogprobColumns
from tests.http.answers import Answer
from tests.http.serving import CHAT, COMPLETIONS, question, with_logprobs

ABSENT: dict[str, Any] = {}
NULL = {"return_tokens_as_token_ids": None}
TRUE = {"return_tokens_as_token_ids": True}
FALSE = {"return_tokens_as_token_ids": False}

SHOWS_TOKEN_IDS = [
    # server flag, request field, whether `token_id:104` is shown
    (True, ABSENT, True),
    (True, NULL, True),
    (True, FALSE, False),
    (True, TRUE, True),
    (False, ABSENT, False),
    (False, NULL, False),
    (False, FALSE, False),
    (False, TRUE, True),
]


class Endpoint(NamedTuple):
    """A kind of request, and the token strings of its rows in either display."""

    name: str
    path: str
    fields: dict[str, Any]
    tokens: dict[bool, list[str]]
    alternatives: dict[bool, list[list[str]]]


ENDPOINTS = [
    Endpoint(
        "chat",
        CHAT,
        with_logprobs(CHAT, 2),
        {False: ["h", "!"], True: ["token_id:104", "token_id:33"]},
        {
            False: [["h", "o"], ["!", "?"]],
            True: [["token_id:104", "token_id:111"], ["token_id:33", "token_id:63"]],
        },
    ),
    Endpoint(
        "completions",
        COMPLETIONS,
        with_logprobs(COMPLETIONS, 1),
        {False: ["h", "!"], True: ["token_id:104", "token_id:33"]},
        {False: [["h", "o"], ["!"]], True: [["token_id:104", "token_id:111"], ["token_id:33"]]},
    ),
    Endpoint(
        "completions-echo",
        COMPLETIONS,
        with_logprobs(COMPLETIONS, 1) | {"echo": True},
        {False: ["a", "b", "h", "!"], True: ["token_id:97", "token_id:98", "token_id:104", "token_id:33"]},
        {
            False: [[], ["b", "c"], ["h", "o"], ["!"]],
            True: [[], ["token_id:98", "token_id:99"], ["token_id:104", "token_id:111"], ["token_id:33"]],
        },
    ),
]


class Case(NamedTuple):
    """One cell of the matrix."""

    flag: bool
    field: dict[str, Any]
    endpoint: Endpoint
    stream: bool
    shows_token_ids: bool

    def __str__(self) -> str:
        field = repr(self.field["return_tokens_as_token_ids"]) if self.field else "absent"
        mode = "stream" if self.stream else "whole"
        return f"{'on' if self.flag else 'off'}-{field}-{self.endpoint.name}-{mode}"

    @property
    def body(self) -> dict[str, Any]:
        return question(self.endpoint.path, "ab", stream=self.stream, **self.endpoint.fields, **self.field)

    def check(self, shown: Answer) -> None:
        """Every token string of the answer is as the rule says."""
        assert shown.text == ("abh!" if "echo" in self.endpoint.fields else "h!")
        assert shown.tokens == self.endpoint.tokens[self.shows_token_ids]
        assert shown.alternatives == self.endpoint.alternatives[self.shows_token_ids]


CASES = [
    Case(flag, field, endpoint, stream, shows_token_ids)
    for (flag, field, shows_token_ids), endpoint, stream in product(SHOWS_TOKEN_IDS, ENDPOINTS, (False, True))
]


def engine() -> ScriptedEngine:
    """Says `h!` to `ab`; `o` was likelier than `h`, `c` likelier than `b`, and `?` came second to `!`."""
    first, *others = steps(104, 33, alternatives=[[111, 104], [33, 63]])
    prompt = LogprobColumns(2, [98, 99], [-0.25, -0.125], [2])
    return ScriptedEngine([replace(first, prompt_logprobs=prompt), *others])
