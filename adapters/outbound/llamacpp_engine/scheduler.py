"""Which requests run, in which of the context's sequences, and what the next step computes of each."""

from bisect import insort
from typing import NamedTuple, Protocol

from adapters.outbound.llamacpp_engine.decoding import Decoding


class Memory(Protocol):
    """What is used of the context."""

    def forget(self, sequence: int, start: int = 0) -> None: ...

    def share(self, source: int, target: int, end: int) -> None: ...


class Part(NamedTuple):
    """What one step computes of one request."""

    decoding: Decoding
    start: int
    tokens: int


class Slot:
    """One of the context's sequences. What a request leaves in it is kept until somebody needs the place."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.decoding: Decoding | None = None
        self.token_ids: list[int] = []
        self.salt: str | None = None
        self.used = 0
        """When it was last let go of: a count."""

    def known(self) -> int:
        """How many of its tokens are computed."""
        return len(self.token_ids) if self.decoding is None else self.decoding.computed


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
        self._releases = 0
        self._is_crowded = False
        """One was put back for want of room, so none is taken up until another has ended."""

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or self._running)

    def everyone(self) -> list[Decoding]:
        return [*self._running, *(waiting for _, _, waiting in self._waiting)]

    def add(self, decoding: Decoding) -> None:
        self._arrivals += 1
        insort(self._waiting, (decoding.request.priority, self._arrivals, decoding), key=lambda entry: entry[:2])

    def remove(self, decoding: Decoding) -> None:
        """It is over."""
        self._waiting = [entry for entry in self._waiting if entry[2] is not decoding]
        if decoding in self._running:
            self._running.remove(decoding)
            self._release(decoding)
            self._is_crowded = False

    def admit(self) -> list[Decoding]:
        """Take up who waits, as far as there are places; gives those that were."""
        taken = []
        while self._waiting and (not self._is_crowded or not self._running):
            free = [slot for slot in self._slots if slot.decoding is None]
            if not free:
                break
            _, _, decoding = self._waiting.pop(0)
            self._place(decoding, free)
            self._running.append(decoding)
            taken.append(decoding)
        return taken

    def plan(self) -> list[Part]:
        """The next step."""
        left = self._prompt_tokens
        parts = []
        for decoding in self._running:
            count = decoding.remaining
            if count > 1:
                count = min(count, left)
                left -= count
            if count:
                parts.append(Part(decoding, decoding.computed, count))
        return parts

    def make_room(self) -> bool:
        """Give up what was left longest ago, else put back the youngest running request, to be computed anew. False
        if there is but one."""
        idle = [slot for slot in self._slots if slot.decoding is None and slot.token_ids]
        if idle:
            self._clear(min(idle, key=lambda slot: slot.used))
            return True
        if len(self._running) < 2:
            return False
        decoding = self._running.pop()
        self._clear(self._release(decoding))
        decoding.computed = 0
        self._waiting.insert(0, (decoding.request.priority, 0, decoding))
        self._is_crowded = True
        return True

    def _place(self, decoding: Decoding, free: list[Slot]) -> None:
        """Give it a sequence, the beginning of which is known if that of any is."""
        known, source = 0, None
        if self._reuses_prefixes and not decoding.scores_prompt:
            known, source = self._longest_known(decoding)
        slot = source if source in free else None
        slot = slot or min(free, key=lambda slot: (bool(slot.token_ids), slot.used))
        self._memory.forget(slot.index, known if slot is source else 0)
        if known and source is not None and slot is not source:
            self._memory.share(source.index, slot.index, known)
        slot.decoding, slot.token_ids, slot.salt = decoding, decoding.token_ids, decoding.request.cache_salt
        decoding.slot, decoding.computed = slot.index, known

    def _longest_known(self, decoding: Decoding) -> tuple[int, Slot | None]:
        """At least one token is left to compute: the next is chosen behind it."""
        most, found = 0, None
        for slot in self._slots:
            if slot.salt == decoding.request.cache_salt:
                known = min(slot.known(), len(decoding.token_ids) - 1)
                common = _common(slot.token_ids, decoding.token_ids, known)
                if common > most:
                    most, found = common, slot
        return most, found

    def _release(self, decoding: Decoding) -> Slot:
        """Take its sequence from it, leaving in it what is computed."""
        slot = self._slots[decoding.slot]
        slot.decoding, slot.token_ids = None, decoding.token_ids[: decoding.computed]
        self._releases += 1
        slot.used = self._releases
        return slot

    def _clear(self, slot: Slot) -> None:
        self._memory.forget(slot.index)
        slot.token_ids = []


def _common(one: list[int], other: list[int], most: int) -> int:
    """How many tokens two sequences begin with in common, at most so many."""
    if one[:most] == other[:most]:
        return most
    return next(index for index in range(most) if one[index] != other[index])
