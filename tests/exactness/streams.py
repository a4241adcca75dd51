"""Random generations: what an engine brings, step by step, and what a client asked for."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from adapters.outbound.mock_engine.scripted import Step
from domain.generation import FinishReason, TokenDelta
from domain.logprobs import LogprobColumns
from tests.exactness.vocabularies import Vocabulary

CHARACTERS = "ab c.é世🎉\ufffd👍🏽\n"
TEXTS = ["Hello, world! 🎉", "the dog", "你好 é", " x", "déjà\u00a0vu\n\n", "ab ab 🐱🐶🎉 ab", "zebra 7"]
ODD_NUMBERS = [float("nan"), float("inf"), float("-inf"), -1e30, -9999.0, -9998.5, 0.0]

ASKED = [(False, False), (False, True), (True, False), (True, True)]
"""How each stream is asked for: whether tokens are shown by id, and whether the answer is streamed."""


class Rows(NamedTuple):
    """As wide as `width` each, the token at the position first."""

    width: int
    token_ids: list[list[int]]
    logprobs: list[list[float]]
    ranks: list[int]

    def columns(self, start: int, end: int) -> LogprobColumns:
        rows = slice(start, end)
        return LogprobColumns(
            self.width,
            [token_id for row in self.token_ids[rows] for token_id in row],
            [value for row in self.logprobs[rows] for value in row],
            self.ranks[rows],
        )


class Stream(NamedTuple):
    """One request and the generation it gets. Chat has one text prompt, completions one or two."""

    is_chat: bool
    prompts: list[str | list[int]]
    prompt_rows: list[Rows | None]
    token_ids: list[int]
    """All that the engine brings: it does not know of stop strings."""
    rows: Rows | None
    finish: FinishReason
    stop_reason: int | None
    alternatives: int | None
    """Of the request: `logprobs`, or chat's `top_logprobs`; None asks for no rows."""
    logprob_token_ids: list[int] | None
    prompt_logprobs: int | None
    echo: bool
    prompt_only: bool
    stop: list[str]
    min_tokens: int
    skip_special_tokens: bool
    return_token_ids: bool
    is_by_flag: bool
    """Whether the server's default decides how tokens are shown, rather than the request against it."""
    cuts: list[list[int]]
    """Ways to cut the tokens into steps, one for each time that it is asked for: how many tokens each step brings.
    One without tokens ends an abort."""

    def script(self, prompt: int, sizes: Sequence[int]) -> list[Step]:
        """The engine's side of one prompt."""
        steps: list[Step] = []
        start = 0
        for place, size in enumerate(sizes):
            end, is_last = start + size, place == len(sizes) - 1
            scores = self.prompt_rows[prompt] if not place else None
            steps.append(
                TokenDelta(
                    self.token_ids[start:end],
                    None if self.rows is None else self.rows.columns(start, end),
                    None if scores is None else scores.columns(0, len(scores.ranks)),
                    self.finish if is_last else None,
                    self.stop_reason if is_last else None,
                )
            )
            start = end
        return steps


def random_stream(choose: random.Random, vocabulary: Vocabulary) -> Stream:
    is_chat = choose.random() < 0.4
    token_ids = _tokens(choose, vocabulary)
    finish, stop_reason = _finish(choose, vocabulary, token_ids)
    asks_ids = choose.random() < 0.1
    wanted = [_any_id(choose, vocabulary) for _ in range(choose.randint(1, 5))] if asks_ids else None
    alternatives = choose.choice([0, 1, 2, 3, 5, -1]) if wanted or choose.random() < 0.9 else None
    is_text = is_chat or choose.random() < 0.3
    prompts: list[str | list[int]] = [_prompt(choose, vocabulary, is_text)]
    if not is_chat and choose.random() < 0.05:
        prompts.append(_prompt(choose, vocabulary, is_text))
    echo = not is_chat and choose.random() < 0.45
    prompt_only = echo and wanted is None and choose.random() < 0.1
    prompt_logprobs = choose.choice([0, 1, 3, -1]) if choose.random() < 0.2 else None
    width = len(wanted) + 1 if wanted else choose.choice([1, 2, 3, 6, 8])
    return Stream(
        is_chat=is_chat,
        prompts=prompts,
        prompt_rows=[_prompt_rows(choose, vocabulary, prompt, is_chat) for prompt in prompts],
        token_ids=token_ids,
        rows=None if alternatives is None else _rows(choose, vocabulary, token_ids, width, wanted),
        finish=finish,
        stop_reason=stop_reason,
        alternatives=alternatives,
        logprob_token_ids=wanted,
        prompt_logprobs=prompt_logprobs,
        echo=echo,
        prompt_only=prompt_only,
        stop=_stop_strings(choose, vocabulary, token_ids) if choose.random() < 0.4 else [],
        min_tokens=choose.choice([0, 0, 0, 1, 3]),
        skip_special_tokens=choose.random() < 0.65,
        return_token_ids=choose.random() < 0.5,
        is_by_flag=choose.random() < 0.5,
        cuts=[_cut(choose, len(token_ids), finish) for _ in ASKED],
    )


def _any_id(choose: random.Random, vocabulary: Vocabulary) -> int:
    kinds = [vocabulary.ids, vocabulary.ids, vocabulary.parts, vocabulary.specials, vocabulary.lacking]
    return choose.choice(choose.choice(kinds) or vocabulary.ids)


def _tokens(choose: random.Random, vocabulary: Vocabulary) -> list[int]:
    """Runs of entries, characters in pieces, pieces of characters, and characters that something stands inside of."""
    token_ids: list[int] = []
    while not token_ids or choose.random() < 0.75:
        kind = choose.random()
        spelled = vocabulary.spell(choose.choice(CHARACTERS))
        if kind < 0.3 or not spelled:
            token_ids += choose.choices(vocabulary.ids, k=choose.randint(1, 3))
        elif kind < 0.5:
            token_ids += spelled
        elif kind < 0.65:
            token_ids += spelled[: choose.randint(1, len(spelled))]
            token_ids += [_any_id(choose, vocabulary)] if choose.random() < 0.5 else []
        elif kind < 0.85:
            place = choose.randint(0, len(spelled))
            token_ids += [*spelled[:place], choose.choice(vocabulary.specials), *spelled[place:]]
        else:
            token_ids.append(_any_id(choose, vocabulary))
    return token_ids[:40]


def _finish(choose: random.Random, vocabulary: Vocabulary, token_ids: list[int]) -> tuple[FinishReason, int | None]:
    kind = choose.random()
    if kind < 0.5:
        return FinishReason.LENGTH, None
    if kind < 0.7:
        token_ids.append(choose.choice(vocabulary.specials))
        return FinishReason.STOP, None
    if kind < 0.8:
        return FinishReason.STOP, token_ids[-1]
    return (FinishReason.ABORT if kind < 0.95 else FinishReason.REPETITION), None


def _prompt(choose: random.Random, vocabulary: Vocabulary, is_text: bool) -> str | list[int]:
    return choose.choice(TEXTS) if is_text else _tokens(choose, vocabulary)


def _rows(
    choose: random.Random, vocabulary: Vocabulary, token_ids: Sequence[int], width: int, wanted: list[int] | None = None
) -> Rows:
    ids = []
    for token_id in token_ids:
        row = [token_id, *(wanted or [_any_id(choose, vocabulary) for _ in range(width - 1)])]
        if wanted is None and width > 1 and choose.random() < 0.5:
            row[choose.randrange(1, width)] = token_id
        ids.append(row)
    return Rows(width, ids, [_numbers(choose, width) for _ in ids], [choose.randint(0, 9) for _ in ids])


def _numbers(choose: random.Random, count: int) -> list[float]:
    """Single precision, as an engine has them."""
    numbers = [float(np.float32(-choose.expovariate(0.2))) for _ in range(count)]
    if choose.random() < 0.1:
        numbers[choose.randrange(count)] = choose.choice(ODD_NUMBERS)
    return numbers


def _prompt_rows(choose: random.Random, vocabulary: Vocabulary, prompt: str | list[int], is_chat: bool) -> Rows | None:
    token_ids = vocabulary.locate(prompt, not is_chat)[0] if isinstance(prompt, str) else prompt
    scored = token_ids[1:]
    if choose.random() < 0.05:
        scored = scored[choose.randint(0, len(scored)) :]
    return _rows(choose, vocabulary, scored, choose.choice([1, 2, 4])) if choose.random() < 0.97 else None


def _stop_strings(choose: random.Random, vocabulary: Vocabulary, token_ids: Sequence[int]) -> list[str]:
    """Mostly parts of the text to come, which then end within a token or across several."""
    text = b"".join(vocabulary[token_id].content for token_id in token_ids).decode(errors="replace")
    long = [token_id for token_id in token_ids if token_id in vocabulary.long_ids]
    stops = []
    for _ in range(choose.randint(1, 3)):
        kind = choose.random()
        if long and kind < 0.7:
            source = vocabulary[choose.choice(long)].content.decode(errors="replace")
        else:
            source = text if kind < 0.9 else choose.choice(TEXTS)
        start = choose.randrange(len(source)) if source else 0
        stops.append(source[start : start + choose.randint(1, 4)] or "zz")
    return stops


def _cut(choose: random.Random, length: int, finish: FinishReason) -> list[int]:
    kind = choose.random()
    sizes: list[int] = []
    while sum(sizes) < length:
        size = 1 if kind < 0.2 else length if kind < 0.35 else choose.choice([1, 1, 2, 3, 5])
        sizes.append(min(size, length - sum(sizes)))
    if finish is FinishReason.ABORT and choose.random() < 0.5:
        sizes.append(0)
    return sizes
