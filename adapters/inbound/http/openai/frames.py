"""An answer's choices as the frames of a stream: the same for every endpoint."""

import asyncio
from functools import partial
from typing import Protocol

from adapters.inbound.http.errors import describe
from adapters.inbound.http.sse import DONE, frame
from application.ports.source import OnReady, Source, nobody
from application.services.aside import CELL, SHORT, begun_aside
from application.services.choices import Choices
from domain.generation import TextDelta

MOST_CELLS = SHORT // CELL
"""Scores that are encoded at once."""


class ChunkEncoder(Protocol):
    """What one endpoint makes of its choices. Each method gives whole frames, or nothing."""

    def opening(self) -> bytes:
        """What comes before the first delta."""

    def delta(self, index: int, delta: TextDelta) -> bytes:
        """The chunk of one choice's delta; nothing when it carries nothing a client can see."""

    def closing(self) -> bytes:
        """What comes after the last delta."""


class AnswerFrames(Source[bytes]):
    """Frames of an answer, to its end or its failure. Closing it closes the choices.

    A chunk with many scores is encoded beside the event loop, and what comes after it waits."""

    def __init__(self, choices: Choices, chunks: ChunkEncoder) -> None:
        self._choices = choices
        self._chunks = chunks
        self._running = len(choices.generations)
        self._opened = False
        self._unscored = {
            index for index, generation in enumerate(choices.generations) if generation.scored_prompt is not None
        }
        """Choices whose prompt's scores are yet to be shown, with the first chunk."""
        self._large: tuple[int, TextDelta] | None = None
        """What is being encoded beside the loop."""
        self._large_chunk: asyncio.Future[bytes]
        self._on_ready: OnReady = nobody

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready
        self._choices.listen(on_ready)

    def take(self) -> bytes | None:
        if not self._running:
            raise StopAsyncIteration
        frames = b""
        if not self._opened:
            self._opened = True
            frames = self._chunks.opening()
        try:
            while (arrival := self._large or self._choices.take()) is not None:
                index, delta = arrival
                if not self._unscored and (
                    delta.scored is None or (rows := delta.scored.columns) is None or len(rows.token_ids) <= MOST_CELLS
                ):
                    frames += self._chunks.delta(index, delta)
                elif (chunk := self._with_scores(index, delta)) is not None:
                    frames += chunk
                else:
                    break
                if delta.finish_reason is not None:
                    self._running -= 1
                    if not self._running:
                        return self._last(frames + self._chunks.closing())
                if frames:
                    return frames
        except StopAsyncIteration:
            raise  # closed meanwhile: nobody reads the rest
        except Exception as failure:
            return self._last(frames + frame(describe(failure)[1]))
        return frames or None

    def close(self) -> None:
        self._large = None
        self._choices.close()
        self._on_ready = nobody

    def _last(self, frames: bytes) -> bytes:
        """Behind them there is the end to take."""
        self._running = 0
        self._on_ready()
        return frames + DONE

    def _with_scores(self, index: int, delta: TextDelta) -> bytes | None:
        """The chunk; None while it is being encoded."""
        if self._large is None:
            cells = delta.scored.cells if delta.scored is not None else 0
            if index in self._unscored:
                cells += self._choices.generations[index].prompt_cells
            if cells <= MOST_CELLS:
                self._unscored.discard(index)
                return self._chunks.delta(index, delta)
            self._large = index, delta
            self._large_chunk = begun_aside(partial(self._chunks.delta, index, delta))
            self._large_chunk.add_done_callback(lambda _: self._on_ready())
        if not self._large_chunk.done():
            return None
        self._large = None
        self._unscored.discard(index)
        self._on_ready()  # what came meanwhile was not taken
        return self._large_chunk.result()
