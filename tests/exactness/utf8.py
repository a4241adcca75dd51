"""What bytes read as, worked out from whole byte strings and a list of how characters begin."""

from itertools import chain

BEGINNINGS = frozenset(
    chr(point).encode()[:length]
    for point in chain(range(0x80, 0xD800, 64), range(0xE000, 0x110000, 64))
    for length in range(1, len(chr(point).encode()))
)
"""All that is part of some character and begins with its first byte."""


def incomplete(content: bytes) -> bytes:
    """The end of `content` that begins a character and does not end it."""
    for length in (3, 2, 1):
        if content[-length:] in BEGINNINGS and len(content) >= length:
            return content[-length:]
    return b""


def read(content: bytes) -> str:
    """With each maximal ill-formed part as one U+FFFD."""
    return content.decode("utf-8", "replace")


def whole(content: bytes) -> str:
    """The same without the character that is not complete yet."""
    return read(content[: len(content) - len(incomplete(content))])
