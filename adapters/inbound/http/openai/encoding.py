"""Values as JSON."""

from collections.abc import Sequence

import msgspec

from domain.logprobs import LOWEST_LOGPROB, clamp

encode = msgspec.json.Encoder().encode

NULL = b"null"

INFINITY = float("inf")


def encode_number(logprob: float) -> bytes:
    """Never null: what has no JSON, or is too low, is clamped."""
    return encode(logprob if LOWEST_LOGPROB < logprob < INFINITY else LOWEST_LOGPROB)


def encode_numbers(logprobs: Sequence[float]) -> list[bytes]:
    """Each logprob, likewise."""
    if not logprobs:
        return []
    numbers = encode(logprobs)
    if NULL in numbers or min(logprobs) < LOWEST_LOGPROB:
        numbers = encode(clamp(logprobs))
    return numbers[1:-1].split(b",")
