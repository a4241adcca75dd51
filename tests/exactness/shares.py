"""How many of the streams are hard, and in which way, as it turns out."""

from collections import Counter

from tests.exactness.meaning import Meaning
from tests.exactness.streams import ASKED, Stream
from tests.exactness.utf8 import incomplete
from tests.exactness.vocabularies import Vocabulary

STREAMS = "streams"
BROKEN = "broken characters"
SPECIAL_INSIDE = "a special token inside a character"
STOP_INSIDE = "a stop string inside a token"
SEVERAL = "several tokens per step"
CUT_INSIDE = "a cut inside a character"

LEAST = {BROKEN: 0.2, SPECIAL_INSIDE: 0.1, STOP_INSIDE: 0.1, SEVERAL: 0.1, CUT_INSIDE: 0.1}
"""The share that each must have at least."""


def traits(stream: Stream, vocabulary: Vocabulary) -> Counter[str]:
    """What a stream is, of the output that a client gets of it."""
    meaning = Meaning(stream, 0, vocabulary)
    kept = meaning.end.kept
    inside = [bool(incomplete(meaning.joined(count))) for count in range(kept + 1)]
    positions = enumerate(meaning.output[:kept])
    steps = [sizes for (_, is_streamed), sizes in zip(ASKED, stream.cuts, strict=True) if is_streamed]
    cuts = {cut for sizes in steps for cut in _cuts(sizes) if 0 < cut < kept}
    found = {
        STREAMS: True,
        BROKEN: _is_broken(meaning.joined(kept)),
        SPECIAL_INSIDE: any(
            vocabulary[position.token_id].is_special and inside[place] for place, position in positions
        ),
        STOP_INSIDE: _stops_inside_a_token(meaning),
        SEVERAL: any(size > 1 for sizes in steps for size in sizes),
        CUT_INSIDE: any(inside[cut] for cut in cuts),
        "chat" if stream.is_chat else "completions": True,
    }
    return Counter(name for name, is_so in found.items() if is_so)


def too_few(counted: Counter[str]) -> list[str]:
    """What is short of its share."""
    return [name for name, least in LEAST.items() if counted[name] < least * counted[STREAMS]]


def table(counted: Counter[str]) -> str:
    total = counted[STREAMS]
    return "\n".join(f"{100 * count / total:6.1f} %  {name}" for name, count in counted.most_common())


def _is_broken(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return True
    return False


def _cuts(sizes: list[int]) -> list[int]:
    return [sum(sizes[:place]) for place in range(1, len(sizes))]


def _stops_inside_a_token(meaning: Meaning) -> bool:
    """Whether the stop string is all in one token, which is more."""
    end = meaning.end
    if not end.is_by_string:
        return False
    before = len(meaning.text(end.kept - 1))
    token = meaning.text(end.kept)[before:]
    return len(end.text) >= before and len(token) > len(str(end.stop_reason))
