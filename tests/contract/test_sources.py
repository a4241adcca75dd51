"""What every source promises whoever listens: a call for each item and for the end, through all layers of an answer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.inbound.http.openai.frames import AnswerFrames, ChunkEncoder
from adapters.inbound.http.sse import DONE, KEEP_ALIVE, KeptAlive
from adapters.outbound.byte_tokenizer.tokenizer import ByteTokenizer
from adapters.outbound.llamacpp_engine.stream import LlamaCppStream
from adapters.outbound.vllm_engine.stream import EngineTokenStream
from application.options import ServerOptions
from application.ports.engine import TokenStream
from application.ports.source import OnReady, Source, nobody
from application.requests import TextOutput
from application.services.choices import Choices
from application.services.derender import Recorded
from application.services.gathered import Gathered
from application.services.response import ResponseStage
from domain.errors import EngineFailure
from domain.generation import FinishReason, TextDelta, TokenDelta
from domain.logprobs import LogprobColumns
from domain.prompt import Prompt
from domain.sampling import SamplingParams
from tests.contract.engines import eventually
from tests.contract.reading import OneAtACall
from tests.fakes.metrics import RememberedMetrics

PROMPT = Prompt([97], text="a")
LAST = TokenDelta([], finish_reason=FinishReason.LENGTH)
LOST = EngineFailure("lost")
STOP = "."


class Texts(ChunkEncoder):
    """Nothing but texts. One that is held back shows in no frame."""

    def opening(self) -> bytes:
        return b""

    def delta(self, index: int, delta: TextDelta) -> bytes:
        return delta.text.encode()

    def closing(self) -> bytes:
        return b""


class Engine(Protocol):
    """What fills a stream."""

    stream: TokenStream
    is_over: bool
    """Whether it was told to go on no longer, or ended by itself."""

    def bring(self, outcome: TokenDelta | EngineFailure) -> None: ...


class Vllm(Engine):
    def __init__(self) -> None:
        self.is_over = False
        self.stream = self._stream = EngineTokenStream("r", SamplingParams(), lambda _: self._end())

    def _end(self) -> None:
        self.is_over = True

    def bring(self, outcome: TokenDelta | EngineFailure) -> None:
        if isinstance(outcome, EngineFailure):
            self.is_over = True
            self._stream.fail(outcome)
        else:
            self.is_over = outcome.finish_reason is not None
            self._stream.put(outcome)


class LlamaCpp(Engine):
    def __init__(self) -> None:
        self.is_over = False
        self.stream = self._stream = LlamaCppStream(self._end)

    def _end(self) -> None:
        self.is_over = True

    def bring(self, outcome: TokenDelta | EngineFailure) -> None:
        self.is_over = isinstance(outcome, EngineFailure) or outcome.finish_reason is not None
        self._stream.put(outcome)


class Answer:
    """Some layers of an answer, over streams that a test fills."""

    def __init__(self, engines: Sequence[Engine], choices: Choices, source: Source[Any]) -> None:
        self.engines = engines
        self.generations = choices.generations
        self.source = source


async def answer(engine: Callable[[], Engine], layer: str, interval: int) -> Answer:
    """It has begun with a token."""
    engines = [engine() for _ in range(2 if layer.startswith("two") else 1)]
    stage = ResponseStage(ByteTokenizer(), ServerOptions())
    output = TextOutput(n=len(engines), interval=interval, stop=(STOP,))
    choices = stage.choices(output)
    start = await stage.start(PROMPT, SamplingParams(), output)
    for each in engines:
        each.bring(TokenDelta([98]))
        reader = stage.reader(start, SamplingParams(), output)
        metrics = RememberedMetrics()
        metrics.request_started()
        choices.add(stage.choice(start, reader, output, each.stream, metrics))
    layers: dict[str, Callable[[], Source[Any]]] = {
        "tokens": lambda: engines[0].stream,
        "generation": lambda: choices.generations[0],
        "choices": lambda: choices,
        "frames": lambda: AnswerFrames(choices, Texts()),
        "kept alive": lambda: KeptAlive(AnswerFrames(choices, Texts()), silence_s=3600),
    }
    if layer != "tokens":
        await choices.start()
    return Answer(engines, choices, layers[layer.removeprefix("two ")]())


LAYERS = ["tokens", "generation", "choices", "two choices", "frames", "two frames", "kept alive"]

tokens = st.lists(st.sampled_from([*b"ab.", *"é".encode()]), max_size=3).map(TokenDelta)
happenings = st.one_of(tokens, tokens, tokens, st.sampled_from([LAST, LOST, "leave", "come back", "abort", "close"]))


@pytest.mark.parametrize("engine", [Vllm, LlamaCpp])
@pytest.mark.parametrize("layer", LAYERS)
@given(happening=st.lists(st.tuples(st.integers(0, 1), happenings), max_size=12), interval=st.sampled_from([1, 1, 3]))
async def test_whatever_happens_nothing_is_left_that_nobody_was_told_of(
    engine: Callable[[], Engine], layer: str, happening: list[tuple[int, Any]], interval: int
) -> None:
    under_test = await answer(engine, layer, interval)
    reader = OneAtACall(under_test.source)
    for index, what in happening:
        place = index % len(under_test.engines)
        match what:
            case "leave":
                reader.leave()
            case "come back":
                reader.come_back()
            case "abort":
                under_test.generations[place].abort()
            case "close":
                under_test.source.close()
            case _:
                if not under_test.engines[place].is_over:
                    under_test.engines[place].bring(what)
    reader.come_back()
    assert reader.left() == []
    under_test.source.close()
    assert reader.has_ended


@asynccontextmanager
async def read(layer: str, interval: int = 1) -> AsyncIterator[tuple[Answer, OneAtACall[Any]]]:
    under_test = await answer(Vllm, layer, interval)
    yield under_test, OneAtACall(under_test.source)
    under_test.source.close()


@pytest.mark.parametrize("layer", LAYERS)
async def test_the_end_is_told(layer: str) -> None:
    async with read(layer) as (under_test, reader):
        for engine in under_test.engines:
            assert not reader.has_ended
            engine.bring(LAST)
        assert reader.has_ended


@pytest.mark.parametrize("layer", ["frames", "kept alive"])
async def test_so_it_is_behind_a_frame_that_tells_a_failure(layer: str) -> None:
    async with read(layer) as (under_test, reader):
        under_test.engines[0].bring(LOST)
        assert b"lost" in reader.taken[-1]
        assert reader.has_ended


class Broken(Texts):
    """At a c."""

    def delta(self, index: int, delta: TextDelta) -> bytes:
        if delta.text == "c":
            raise ValueError
        return super().delta(index, delta)


async def test_so_it_is_behind_a_frame_that_tells_a_failure_of_our_own() -> None:
    under_test = await answer(Vllm, "choices", 1)
    choices = under_test.source
    assert isinstance(choices, Choices)
    reader = OneAtACall(AnswerFrames(choices, Broken()))
    under_test.engines[0].bring(TokenDelta([99]))
    assert reader.taken[-1].endswith(DONE)
    assert reader.has_ended


class Deltas(Source[TextDelta]):
    """Calls once for each, and for a failure."""

    def __init__(self) -> None:
        self._outcomes: list[TextDelta | EngineFailure] = []
        self._on_ready: OnReady = nobody

    def bring(self, outcome: TextDelta | EngineFailure) -> None:
        self._outcomes.append(outcome)
        self._on_ready()

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready

    def take(self) -> TextDelta | None:
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if isinstance(outcome, EngineFailure):
            raise outcome
        return outcome

    def close(self) -> None: ...


async def test_a_failure_is_told_behind_the_tokens_gathered_before_it() -> None:
    deltas = Deltas()
    reader = OneAtACall(Gathered(deltas, 3))
    for token_id in b"bc":
        deltas.bring(TextDelta(chr(token_id), [token_id]))
    assert [delta.text for delta in reader.taken] == ["b"]
    deltas.bring(LOST)
    assert [delta.text for delta in reader.taken] == ["b", "c"]
    with pytest.raises(EngineFailure, match="lost"):
        await reader.ended()


async def test_a_failure_of_one_choice_is_told_behind_what_others_have_gathered() -> None:
    async with read("two choices", interval=9) as (under_test, reader):
        under_test.engines[1].bring(TokenDelta([99]))
        assert [delta.text for _, delta in reader.taken] == ["b", "b"]
        under_test.engines[0].bring(LOST)
        assert [(index, delta.text) for index, delta in reader.taken[2:]] == [(1, "c")]
        with pytest.raises(EngineFailure, match="lost"):
            await reader.ended()


@pytest.mark.parametrize("layer", LAYERS)
async def test_what_came_while_the_reader_was_away_is_there_when_it_is_back(layer: str) -> None:
    async with read(layer) as (under_test, reader):
        reader.leave()
        for engine in under_test.engines:
            for width in (1, 2, 2):
                engine.bring(TokenDelta([99], LogprobColumns(width, [99] * width, [0.0] * width, [1])))
            engine.bring(LAST)
        before = len(reader.taken)
        reader.come_back()
        assert len(reader.taken) > before
        assert reader.has_ended


@pytest.mark.parametrize("is_away", [False, True])
async def test_an_abort_is_told_behind_all_that_came_before(is_away: bool) -> None:
    async with read("choices") as (under_test, reader):
        if is_away:
            reader.leave()
        under_test.engines[0].bring(TokenDelta([99]))
        under_test.generations[0].abort()
        reader.come_back()
        assert [(delta.text, delta.finish_reason) for _, delta in reader.taken] == [
            ("b", None),
            ("c", None),
            ("", FinishReason.ABORT),
        ]
        assert reader.has_ended


class Slow(Texts):
    """Takes its time over scores."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def delta(self, index: int, delta: TextDelta) -> bytes:
        if delta.scored is not None:
            self.begun.set()
            self.may_end.wait()
        return super().delta(index, delta)


async def test_what_waits_behind_a_chunk_that_is_encoded_aside_is_told_with_it() -> None:
    under_test = await answer(Vllm, "choices", 1)
    choices, engine, encoder = under_test.source, under_test.engines[0], Slow()
    assert isinstance(choices, Choices)
    reader = OneAtACall(AnswerFrames(choices, encoder))
    width = 1 << 13
    engine.bring(TokenDelta([99], LogprobColumns(width, range(width), [0.0] * width, [1])))
    for token_id in b"de":
        engine.bring(TokenDelta([token_id]))
    await asyncio.to_thread(encoder.begun.wait)
    assert reader.taken == [b"b"]
    encoder.may_end.set()
    engine.bring(LAST)
    assert b"".join(await reader.ended()).startswith(b"bcde")


async def test_what_is_recorded_is_there_at_once() -> None:
    reader = OneAtACall(Recorded(TokenDelta([97]), LAST))
    assert await reader.ended() == [TokenDelta([97]), LAST]


async def test_each_silence_is_told() -> None:
    under_test = await answer(Vllm, "choices", 1)
    choices = under_test.source
    assert isinstance(choices, Choices)
    kept = KeptAlive(AnswerFrames(choices, Texts()), silence_s=0.001)
    reader = OneAtACall(kept)
    await eventually(lambda: len(reader.taken) >= 3)
    assert reader.taken[:3] == [b"b", KEEP_ALIVE, KEEP_ALIVE]
    kept.close()
