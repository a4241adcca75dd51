"""What is counted in place of seconds: the same on every machine, however busy it is."""

import asyncio
import dis
import gc
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any, Final, NamedTuple, TypeVarTuple, Unpack

Ts = TypeVarTuple("Ts")

CALLING: Final = {"CALL", "CALL_KW", "CALL_FUNCTION_EX"}
BUILDING: Final = {
    *("BUILD_LIST", "BUILD_TUPLE", "BUILD_STRING", "BUILD_SET", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "MAKE_FUNCTION")
}
IGNORED: Final = {"PRECALL", "CACHE", "NOP"}
"""They may stand between two that belong together."""

COMPREHENSIONS: Final = {"<listcomp>", "<dictcomp>", "<setcomp>"}
"""Functions in Python 3.11, part of the one around them from 3.12 on: not counted as called or made."""


class Cost(NamedTuple):
    """Per run, token, step or request. Of Python: what a function in C does by itself is not in it."""

    entered: float
    """Functions in Python, however they came to be called; coroutines each time that they go on."""
    calls: float
    """Of anything by Python code: functions in Python and in C, and classes, which makes an object."""
    built: float
    """Lists, tuples, strings, sets, dicts and functions that are written out, and so made without a call."""
    instructions: float
    """Of Python's bytecode. From 3.12 on there are some percent less, as one may stand for two."""

    def exceeds(self, bound: "Cost") -> bool:
        return any(cost > most for cost, most in zip(self, bound, strict=True))


class Memory(NamedTuple):
    """Bytes that it takes to run something."""

    meanwhile: int
    kept: int


class Trace(NamedTuple):
    """Counts by the function that did it, so that a bound that does not hold says why."""

    entered: Counter[str]
    calls: Counter[str]
    built: Counter[str]
    instructions: Counter[str]

    @property
    def cost(self) -> Cost:
        return Cost(*(counts.total() for counts in self))

    def beyond(self, other: "Trace") -> "Trace":
        """What it has more than another."""
        return Trace(*(mine - others for mine, others in zip(self, other, strict=True)))


def traced(run: Callable[[], object]) -> Trace:
    """What it takes to run this. It is run twice: of what is traced for the first time, the interpreter misses some."""
    trace = Trace(Counter(), Counter(), Counter(), Counter())
    codes: dict[CodeType, dict[int, Counter[str]]] = {}

    def enter(frame: FrameType, _event: str, _arg: Any) -> Any:
        code = frame.f_code
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if code not in codes:
            codes[code] = _noted(code, trace)
        if code.co_name not in COMPREHENSIONS:
            trace.entered[code.co_qualname] += 1
        return note

    def note(frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "opcode":
            code = frame.f_code
            trace.instructions[code.co_qualname] += 1
            if (noted := codes[code].get(frame.f_lasti)) is not None:
                noted[code.co_qualname] += 1
        return note

    before = sys.gettrace()
    with _undisturbed():
        for _ in range(2):
            for counts in trace:
                counts.clear()
            sys.settrace(enter)
            try:
                run()
            finally:
                sys.settrace(before)
    return trace


def memory(run: Callable[[], object]) -> Memory:
    with _undisturbed():
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            run()
            after, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return Memory(most - before, after - before)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What the garbage collector finalizes is not of what is counted."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _noted(code: CodeType, trace: Trace) -> dict[int, Counter[str]]:
    """Where instructions are counted once more."""
    noted = {}
    instructions = [each for each in dis.get_instructions(code) if each.opname not in IGNORED]
    for last, each in pairwise(instructions):
        if each.opname in CALLING and last.opname != "GET_ITER":  # which is a comprehension's
            noted[each.offset] = trace.calls
        elif each.opname in BUILDING and last.opname != "LOAD_CLOSURE" and not _is_comprehension(last.argval):
            noted[each.offset] = trace.built
    return noted


def _is_comprehension(constant: object) -> bool:
    return isinstance(constant, CodeType) and constant.co_name in COMPREHENSIONS


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts what it is given to run: callbacks, timers, futures and tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.set_debug(False)  # which costs, too
        self.made = Counter[str]()
        """Since it was last cleared."""

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self.made["callback"] += 1
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self.made["timer"] += 1
        return super().call_at(when, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        self.made["future"] += 1
        return super().create_future()

    def create_task(self, *args: Any, **kwargs: Any) -> Any:
        self.made["task"] += 1
        return super().create_task(*args, **kwargs)

    def turn(self) -> None:
        """Run what is ready, once."""
        self.stop()
        self.run_forever()
