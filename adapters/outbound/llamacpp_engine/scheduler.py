"""Which requests run, in which of the context's sequences, and what the next step computes of each."""

from bisect import insort
from typing import Final, NamedTuple, Protocol

from adapters.outbound.llamacpp_engine.decoding import Decoding

WORTH_COPYING: Final = 64
"""Tokens in common from which on it is cheaper to copy another sequence, which is done as a whole, than to compute."""


class Memory(Protocol):
    """What is used of the context."""

    def forget(self, sequence: int, start: int = 0) -> None: ...

    def copy(self, source: int, target: int) -> None: ...


class Part(NamedTuple):
    """What one step computes of one request."""

    decoding: Decoding
    start: int
    tokens: int


class Slot:
    """One of the context's sequences. What a request leaves in it is kept until the place is needed."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.is_free = True
        self.token_ids: list[int] = []
        """Of whom it is, or was last."""
        self.computed = 0
        """How many of them are in memory."""
        self.salt: str | None = None
        self.last_used = 0
        """A count: higher is later."""


class Scheduler:
    """Requests wait by priority, then by arrival. Running ones get one token each per step, and what a step has left
    goes to prompts, oldest first."""

    def __init__(self, memory: Memory, *, slots: int, prompt_tokens: int, reuses_prefixes: bool) -> None:
        """`prompt_tokens` is how many tokens of prompts a step computes at most."""
        self._memory = memory
        self._slots = [Slot(index) for index in range(slots)]
        self._prompt_tokens = prompt_tokens
        self._reuses_prefixes = reuses_prefixes
        self._waiting: list[tuple[int, int, Decoding]] = []
        self._running: list[Decoding] = []
        self._arrivals = 0
        self._uses = 0

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or self._running)

    def add(self, decoding: Decoding) -> None:
        self._arrivals += 1
        insort(self._waiting, (decoding.request.priority, self._arrivals, decoding), key=lambda entry: entry[:2])

    def remove(self, decoding: Decoding) -> None:
        """It is over, or was called off; which may be said twice."""
        self._waiting = [entry for entry in self._waiting if entry[2] is not decoding]
        if decoding in self._running:
            self._running.remove(decoding)
            self._slots[decoding.slot].is_free = True

    def admit(self) -> list[Decoding]:
        """Take up who waits, as far as there are places; gives those that were."""
        taken: list[Decoding] = []
        while self._waiting and (free := [slot for slot in self._slots if slot.is_free]):
            decoding = self._waiting[0][2]
            reuses = self._reuses_prefixes and decoding.sampling.prompt_logprobs is None
            if reuses and self._will_be_known(decoding):
                break
            self._place(decoding, free, self._known(decoding) if reuses else {})
            del self._waiting[0]
            self._running.append(decoding)
            taken.append(decoding)
        return taken

    def plan(self) -> list[Part]:
        """The next step."""
        left = self._prompt_tokens
        parts = []
        for decoding in self._running:
            tokens = len(decoding.token_ids) - self._slots[decoding.slot].computed
            if tokens > 1:
                tokens = min(tokens, left)
                left -= tokens
            if tokens:
                parts.append(Part(decoding, self._slots[decoding.slot].computed, tokens))
        return parts

    def advance(self, part: Part) -> bool:
        """It is computed. Whether the next token can be chosen."""
        slot = self._slots[part.decoding.slot]
        slot.computed += part.tokens
        return slot.computed == len(slot.token_ids)

    def _known(self, decoding: Decoding) -> dict[int, int]:
        """How many of its tokens each sequence begins with. At least one is left: the next is chosen behind it."""
        most = len(decoding.token_ids) - 1
        return {
            slot.index: _common(slot.token_ids, decoding.token_ids, min(slot.computed, most))
            for slot in self._slots
            if slot.salt == decoding.request.cache_salt
        }

    def _will_be_known(self, decoding: Decoding) -> bool:
        """Whether another request is about to compute what this one could then copy, such as the same prompt."""
        known = self._known(decoding)
        to_have = max((known.get(slot.index, 0) for slot in self._slots if slot.is_free), default=0)
        for slot in self._slots:
            if not slot.is_free and slot.index in known:
                most = min(len(slot.token_ids), len(decoding.token_ids) - 1)
                common = _common(slot.token_ids, decoding.token_ids, most)
                if common > slot.computed and common >= to_have + WORTH_COPYING:
                    return True
        return False

    def _place(self, decoding: Decoding, free: list[Slot], known: dict[int, int]) -> None:
        """Give it a sequence that begins as it does, or can be made to."""
        slot = max(free, key=lambda slot: (known.get(slot.index, 0), -slot.last_used))
        computed = known.get(slot.index, 0)
        source = max(known, key=lambda index: known[index], default=slot.index)
        if known.get(source, 0) >= computed + WORTH_COPYING:
            self._memory.forget(slot.index)
            self._memory.copy(source, slot.index)
            computed = known[source]
        self._memory.forget(slot.index, computed)
        self._uses += 1
        slot.is_free, slot.last_used = False, self._uses
        slot.token_ids, slot.computed, slot.salt = decoding.token_ids, computed, decoding.request.cache_salt
        decoding.slot, decoding.cached_tokens = slot.index, computed


def _common(one: list[int], other: list[int], most: int) -> int:
    """How many tokens two sequences begin with in common, at most so many."""
    if one[:most] == other[:most]:
        return most
    return next(index for index in range(most) if one[index] != other[index])
