"""An answer's choices in one piece: the same for every endpoint."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct

from application.services.aside import CELL, one_by_one
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
    cells: int
    """How many scores it has."""


TakeIn = Callable[[int, TextDelta], str]
"""Given the index of a choice and a delta of it, of which it takes the rows; gives the text to show."""


async def body_of(choices: Choices, take_in: TakeIn, encode: Callable[[Sequence[Ended]], bytes]) -> bytes:
    """What `encode` makes of the choices at their end. Many scores are encoded beside the event loop."""
    ended = await _run_to_end(choices, take_in)
    prompts = sum(generation.prompt_cells for generation in choices.generations)
    return await one_by_one(CELL * prompts + sum(choice.cells for choice in ended), lambda: encode(ended))


async def _run_to_end(choices: Choices, take_in: TakeIn) -> Sequence[Ended]:
    """By the indexes of the choices."""
    texts: list[list[str]] = [[] for _ in choices.generations]
    token_ids: list[list[int]] = [[] for _ in choices.generations]
    all_cells = [0] * len(texts)
    last: dict[int, TextDelta] = {}
    async for index, delta in choices:
        cells = delta.scored.cells if delta.scored else 0
        if not texts[index]:  # the prompt is echoed with the first
            cells += choices.generations[index].prompt_cells
        texts[index].append(await one_by_one(CELL * cells, partial(take_in, index, delta)))
        all_cells[index] += cells
        token_ids[index] += delta.token_ids
        if delta.finish_reason is not None:
            last[index] = delta
    return [
        Ended(
            "".join(texts[index]),
            token_ids[index],
            last[index].finish_reason,
            last[index].stop_reason,
            all_cells[index],
        )
        for index in range(len(texts))
    ]


def rows_into(logprobs: Sequence[Scores | None]) -> TakeIn:
    """Of each choice into its own; the text is shown as it comes."""

    def take_in(index: int, delta: TextDelta) -> str:
        if scores := logprobs[index]:
            scores.add(delta.scored)
        return delta.text

    return take_in
