"""What a token costs on its way from the engine's message to the connection: counted, not timed.

The bounds on calls and on what is built are what they are today, so that one more is noticed: another object, closure,
coroutine or call per token is to be worth it, and whoever finds one to be spared lowers the bound.
"""

from functools import cache, partial
from typing import Any

import pytest

from tests.compiled import compiled_fill_rows, compiled_read_row, needs_compiler
from tests.cost.counting import Cost, Trace, memory, traced
from tests.cost.server import PYTHON, Scores, Server
from tests.http.serving import CHAT, COMPLETIONS, question, with_logprobs

PLAIN = {
    (CHAT, None): Cost(15, 28, 3, 485),
    (COMPLETIONS, None): Cost(16, 29, 3, 503),
}
"""Per token, by endpoint and alternatives."""

COMPILED = PLAIN | {
    (CHAT, 0): Cost(18, 37, 5, 627),
    (CHAT, 5): Cost(19, 38, 7, 676),
    (CHAT, 20): Cost(19, 38, 7, 676),
    (COMPLETIONS, 5): Cost(21, 41, 8, 723),
}
"""Where rows are read and filled in C."""

IN_PYTHON = PLAIN | {
    (CHAT, 0): Cost(19, 44, 6, 682),
    (CHAT, 5): Cost(24, 65, 12, 945),
    (CHAT, 20): Cost(24, 65, 12, 945),
    (COMPLETIONS, 5): Cost(26, 71, 13, 998),
}
"""Where they are not."""

STEP = Cost(50, 100, 10, 1000)
"""Beside its tokens. Most of it is the event loop's own."""

FEW, MANY = 4, 16
"""Streams: what a step of the ones costs beyond one of the others is of the tokens that it has more."""


def asking(path: str, alternatives: int | None, **fields: Any) -> dict[str, Any]:
    return question(path, **fields) | ({} if alternatives is None else with_logprobs(path, alternatives))


@cache
def of_step(path: str, alternatives: int | None, streams: int, scores: Scores = PYTHON, **fields: Any) -> Trace:
    """One token for each of so many streams."""
    with Server(scores=scores) as server:
        server.ask(path, asking(path, alternatives, **fields), streams)
        frames = server.step(alternatives)
        return traced(lambda: server.deliver(frames))


def of_tokens(path: str, alternatives: int | None, **fields: Any) -> Trace:
    """Of `MANY - FEW` of them."""
    return of_step(path, alternatives, MANY, **fields).beyond(of_step(path, alternatives, FEW, **fields))


def per_token(trace: Trace, tokens: int = MANY - FEW) -> Cost:
    return Cost(*(count / tokens for count in trace.cost))


@pytest.fixture(params=["in Python", pytest.param("compiled", marks=needs_compiler)])
def scores(request: pytest.FixtureRequest) -> Scores:
    return PYTHON if request.param == "in Python" else Scores(compiled_read_row(), compiled_fill_rows())


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize(("path", "alternatives"), COMPILED)
def test_a_token(path: str, alternatives: int | None, by_id: bool, scores: Scores) -> None:
    trace = of_tokens(path, alternatives, scores=scores, return_tokens_as_token_ids=by_id)
    cost = per_token(trace)
    bound = (IN_PYTHON if scores == PYTHON else COMPILED)[path, alternatives]
    assert not cost.exceeds(bound), (cost, f"of {MANY - FEW} tokens", trace)
    assert cost[:3] == bound[:3], "it got less: lower the bound, or one more would not be noticed"


def test_a_score_costs_little_beside_its_token() -> None:
    plain, scored = per_token(of_tokens(CHAT, None)), per_token(of_tokens(CHAT, 0))
    assert scored.instructions < 1.4 * plain.instructions


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_more_alternatives_cost_no_instruction_more(path: str, scores: Scores) -> None:
    """What is done for each of them is done in C."""
    assert of_tokens(path, 20, scores=scores).cost == of_tokens(path, 5, scores=scores).cost


def test_a_step() -> None:
    few = of_step(CHAT, None, FEW)
    tokens = per_token(of_tokens(CHAT, None))
    step = Cost(*(all_of_it - FEW * token for all_of_it, token in zip(few.cost, tokens, strict=True)))
    assert not step.exceeds(STEP), (step, few)


def test_a_token_costs_the_same_beside_512_streams() -> None:
    of_16, of_64, of_512 = (of_step(CHAT, None, streams) for streams in (16, 64, 512))
    assert per_token(of_512.beyond(of_64), 512 - 64) == per_token(of_64.beyond(of_16), 64 - 16)


def generate(server: Server, steps: list[list[bytes]], tokens: int) -> None:
    for place in range(tokens):
        server.deliver(steps[place % len(steps)])


@pytest.mark.parametrize(
    ("path", "alternatives", "stop"), [(CHAT, None, []), (CHAT, None, ["It does not come."]), (COMPLETIONS, 5, [])]
)
def test_the_last_of_20_000_tokens_costs_the_same_as_the_200th(
    path: str, alternatives: int | None, stop: list[str]
) -> None:
    with Server() as server:
        server.ask(path, asking(path, alternatives, stop=stop), 1)
        steps = [server.step(alternatives, seed=seed) for seed in range(100)]
        costs, needed = [], []
        for tokens in (200, 19_800):
            generate(server, steps, tokens)
            costs.append(traced(lambda: server.deliver(steps[0])).cost)
            needed.append(memory(partial(generate, server, steps, 100)).meanwhile)
    assert costs[0] == costs[1]
    assert needed[1] < 1.2 * needed[0]


@pytest.mark.parametrize(("path", "alternatives"), [(CHAT, None), (CHAT, 5), (COMPLETIONS, 5)])
def test_nothing_is_kept_of_tokens_that_are_written(path: str, alternatives: int | None) -> None:
    with Server() as server:
        server.ask(path, asking(path, alternatives), 1)
        steps = [server.step(alternatives, seed=seed) for seed in range(100)]
        generate(server, steps, 100)
        few, many = (memory(partial(generate, server, steps, tokens)).kept for tokens in (100, 1100))
    assert many - few < 500


@pytest.mark.parametrize("silence_limit", [0, 30])
@pytest.mark.parametrize("alternatives", [None, 5])
def test_tokens_are_written_at_once_with_no_task_future_or_timer(
    alternatives: int | None, silence_limit: float
) -> None:
    """One callback has all streams of a step written, each in one piece; likewise steps that come together."""
    with Server(silence_limit=silence_limit) as server:
        clients = server.ask(CHAT, asking(CHAT, alternatives), 64)
        frames = server.step(alternatives)
        for steps in ([frames], [frames, frames, frames]):
            server.loop.made.clear()
            written = [client.writes for client in clients]
            server.deliver(*steps)
            assert server.loop.made == {"callback": 1}
            assert [client.writes for client in clients] == [writes + 1 for writes in written]
