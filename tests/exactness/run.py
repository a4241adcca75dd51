"""Streams by their number, each vocabulary in turn."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.exactness.client import Client
from tests.exactness.properties import check
from tests.exactness.shares import traits
from tests.exactness.streams import Stream, random_stream
from tests.exactness.vocabularies import Vocabulary, all_made, of_model


class Result(NamedTuple):
    """Of some streams."""

    counted: Counter[str]
    failures: list[str]


@cache
def vocabularies(model: Path | None) -> Sequence[Vocabulary]:
    return [*all_made(), *([of_model(model)] if model else [])]


@cache
def clients(model: Path | None) -> Sequence[Client]:
    return [Client(vocabulary) for vocabulary in vocabularies(model)]


def make(seed: str, index: int, vocabulary: Vocabulary) -> Stream:
    return random_stream(random.Random(f"{seed}:{index}"), vocabulary)


def run(seed: str, indexes: Iterable[int], model: Path | None = None) -> Result:
    """Check the streams of these numbers."""
    return asyncio.run(_run(seed, indexes, model))


async def _run(seed: str, indexes: Iterable[int], model: Path | None) -> Result:
    counted: Counter[str] = Counter()
    failures = []
    for index in indexes:
        place = index % len(vocabularies(model))
        vocabulary = vocabularies(model)[place]
        stream = make(seed, index, vocabulary)
        counted += traits(stream, vocabulary) + Counter([vocabulary.name])
        try:
            await check(stream, vocabulary, clients(model)[place])
        except Exception as failure:  # whatever it is, the stream that brings it about is what is wanted
            kind = type(failure).__name__
            failures.append(f"{vocabulary.name}, --seed {seed} --only {index}\n{stream}\n{kind}: {failure}")
    return Result(counted, failures)
