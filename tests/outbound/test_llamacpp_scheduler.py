"""Who runs in which sequence, and what a step computes; without llama.cpp."""

from collections.abc import Sequence
from typing import Any

import pytest

from adapters.outbound.llamacpp_engine.decoding import Decoding
from adapters.outbound.llamacpp_engine.scheduler import WORTH_COPYING, Memory, Scheduler
from domain.generation import FinishReason, GenerationRequest, StopReason
from domain.sampling import SamplingParams


class Recorded(Memory):
    """What was asked of the context."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []

    def forget(self, sequence: int, start: int = 0) -> None:
        self.calls.append(("forget", sequence, start))

    def copy(self, source: int, target: int) -> None:
        self.calls.append(("copy", source, target))


def scheduler(memory: Recorded | None = None, slots: int = 2, reuses_prefixes: bool = True) -> Scheduler:
    return Scheduler(memory or Recorded(), slots=slots, prompt_tokens=10, reuses_prefixes=reuses_prefixes)


def request(
    prompt: Sequence[int], priority: int = 0, salt: str | None = None, max_model_len: int = 1000, **sampling: Any
) -> Decoding:
    asked = GenerationRequest(
        request_id="r",
        prompt_token_ids=prompt,
        sampling=SamplingParams(**sampling),
        priority=priority,
        cache_salt=salt,
    )
    return Decoding(asked, None, max_model_len, 0.0)


def step(scheduling: Scheduler) -> list[tuple[Decoding, int, int]]:
    """Compute what is planned, and let whoever is through with that say 7."""
    scheduling.admit()
    parts = scheduling.plan()
    for part in parts:
        if scheduling.advance(part):
            part.decoding.append(7)
    return [tuple(part) for part in parts]  # type: ignore[misc]


def run(scheduling: Scheduler, decoding: Decoding, steps: int = 20) -> None:
    scheduling.add(decoding)
    for _ in range(steps):
        step(scheduling)
    scheduling.remove(decoding)


def test_running_ones_get_a_token_each_and_prompts_what_is_left() -> None:
    scheduling = scheduler(slots=3)
    one, long, other = request([1]), request(range(12)), request(range(20, 25))
    for decoding in (one, long, other):
        scheduling.add(decoding)
    assert step(scheduling) == [(one, 0, 1), (long, 0, 10)]
    assert step(scheduling) == [(one, 1, 1), (long, 10, 2), (other, 0, 5)]
    assert step(scheduling) == [(one, 2, 1), (long, 12, 1), (other, 5, 1)]


def test_who_has_no_place_waits_by_priority_and_arrival() -> None:
    scheduling = scheduler(slots=1)
    first, late, low, urgent = request([1]), request([2]), request([3], priority=1), request([4], priority=-1)
    for decoding in (first, low, late, urgent):
        scheduling.add(decoding)
    order = []
    for _ in range(4):
        (taken,) = scheduling.admit()
        assert scheduling.admit() == []
        order.append(taken)
        scheduling.remove(taken)
    assert order == [urgent, first, late, low]
    assert not scheduling.has_work


def test_who_is_called_off_while_waiting_never_runs() -> None:
    scheduling = scheduler(slots=1)
    first, left = request([1]), request([2])
    scheduling.add(first)
    scheduling.add(left)
    scheduling.admit()
    scheduling.remove(left)
    scheduling.remove(left)
    scheduling.remove(first)
    assert scheduling.admit() == []
    assert not scheduling.has_work


def test_a_sequence_that_begins_alike_is_cut_and_gone_on_with() -> None:
    memory = Recorded()
    scheduling = scheduler(memory)
    run(scheduling, request(range(100, 110)))
    run(scheduling, request(range(200, 210)))
    again = request([*range(100, 106), 1, 2, 3])
    scheduling.add(again)
    scheduling.admit()
    assert (again.slot, again.cached_tokens) == (0, 6)
    assert memory.calls[-1] == ("forget", 0, 6)
    assert scheduling.plan()[0][1:] == (6, 3)


def test_the_last_token_of_a_prompt_is_computed_always() -> None:
    scheduling = scheduler()
    run(scheduling, request(range(10)))
    again = request(range(10))
    scheduling.add(again)
    scheduling.admit()
    assert again.cached_tokens == 9


@pytest.mark.parametrize(
    "other",
    [
        lambda: (scheduler(), request(range(10), salt="s")),
        lambda: (scheduler(), request(range(10), prompt_logprobs=0)),
        lambda: (scheduler(reuses_prefixes=False), request(range(10))),
    ],
    ids=["of another salt", "whose prompt is scored", "of a model that cannot"],
)
def test_nothing_is_reused_by_a_request(other: Any) -> None:
    scheduling, decoding = other()
    run(scheduling, request(range(10)))
    scheduling.add(decoding)
    scheduling.admit()
    assert decoding.cached_tokens == 0


def test_the_place_used_longest_ago_is_given_away_first() -> None:
    scheduling = scheduler()
    run(scheduling, request([1, 2, 3]))
    run(scheduling, request([4, 5, 6]))
    run(scheduling, request([1, 2, 3]))
    fresh = request([9, 9])
    scheduling.add(fresh)
    scheduling.admit()
    assert fresh.slot == 1


def test_choices_of_a_long_prompt_wait_until_it_is_known() -> None:
    memory = Recorded()
    scheduling = scheduler(memory, slots=3)
    prompt = range(3 * WORTH_COPYING)
    one, other, third = (request(prompt) for _ in range(3))
    for decoding in (one, other, third):
        scheduling.add(decoding)
    while not one.output:
        assert [part[0] for part in step(scheduling)] == [one]
    step(scheduling)
    assert (other.cached_tokens, third.cached_tokens) == (len(prompt) - 1, len(prompt) - 1)
    assert [call for call in memory.calls if call[0] == "copy"] == [("copy", 0, 1), ("copy", 0, 2)]


def test_short_prompts_wait_for_nobody() -> None:
    scheduling = scheduler()
    prompt = range(WORTH_COPYING)
    scheduling.add(request(prompt))
    scheduling.add(request(prompt))
    assert len(scheduling.admit()) == 2


@pytest.mark.parametrize(
    ("sampling", "ends"),
    [
        ({"max_tokens": 2}, [(None, None), (FinishReason.LENGTH, None)]),
        ({"eos_token_id": 7}, [(FinishReason.STOP, None)]),
        ({"stop_token_ids": [7]}, [(FinishReason.STOP, 7)]),
        ({"eos_token_id": 7, "ignore_eos": True, "max_tokens": 1}, [(FinishReason.LENGTH, None)]),
        ({"stop_token_ids": [7], "min_tokens": 1}, [(None, None), (FinishReason.STOP, 7)]),
        ({"stop_token_ids": [7], "max_tokens": 1}, [(FinishReason.STOP, 7)]),
        ({"max_tokens": 100}, [(None, None), (None, None), (FinishReason.LENGTH, None)]),
    ],
    ids=str,
)
def test_how_an_output_ends(
    sampling: dict[str, Any], ends: list[tuple[FinishReason | None, StopReason | None]]
) -> None:
    decoding = request([1, 2], max_model_len=5, **sampling)
    assert [decoding.append(7) for _ in ends] == ends
