"""An answer's choices in one piece: the same for every endpoint."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from application.services.choices import Choices
from domain.generation import FinishReason, ScoredTokens, StopReason, TextDelta


class Scores(Protocol):
    """`choices[].logprobs`, as it grows."""

    def add(self, scored: ScoredTokens | None) -> None: ...

    def take(self) -> bytes: ...


class Ended(Struct):
    """A choice at its end."""

    text: str
    token_ids: Sequence[int]
    finish_reason: FinishReason | None
    stop_reason: StopReason | None


TakeIn = Callable[[int, TextDelta], str]
"""Given the index of a choice and a delta of it, of which it takes the rows; gives the text to show."""


async def run_to_end(choices: Choices, take_in: TakeIn) -> Sequence[Ended]:
    """By the indexes of the choices."""
    texts: list[list[str]] = [[] for _ in choices.generations]
    token_ids: list[list[int]] = [[] for _ in choices.generations]
    last: dict[int, TextDelta] = {}
    async for index, delta in choices:
        texts[index].append(take_in(index, delta))
        token_ids[index] += delta.token_ids
        if delta.finish_reason is not None:
            last[index] = delta
    return [
        Ended("".join(texts[index]), token_ids[index], last[index].finish_reason, last[index].stop_reason)
        for index in range(len(texts))
    ]


def rows_into(logprobs: Sequence[Scores | None]) -> TakeIn:
    """Of each choice into its own; the text is shown as it comes."""

    def take_in(index: int, delta: TextDelta) -> str:
        if scores := logprobs[index]:
            scores.add(delta.scored)
        return delta.text

    return take_in
