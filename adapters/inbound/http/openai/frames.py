"""An answer's choices as the frames of a stream: the same for every endpoint."""

from typing import Protocol

from adapters.inbound.http.errors import describe
from adapters.inbound.http.sse import DONE, frame
from application.ports.source import OnReady, Source
from application.services.choices import Choices
from domain.generation import TextDelta


class ChunkEncoder(Protocol):
    """What one endpoint makes of its choices. Each method gives whole frames, or nothing."""

    def opening(self) -> bytes:
        """What comes before the first delta."""

    def delta(self, index: int, delta: TextDelta) -> bytes:
        """The chunk of one choice's delta; nothing when it carries nothing a client can see."""

    def closing(self) -> bytes:
        """What comes after the last delta."""


class AnswerFrames(Source[bytes]):
    """Frames of an answer, to its end or its failure. Closing it closes the choices."""

    def __init__(self, choices: Choices, chunks: ChunkEncoder) -> None:
        self._choices = choices
        self._chunks = chunks
        self._running = len(choices.generations)
        self._opened = False

    def listen(self, on_ready: OnReady) -> None:
        self._choices.listen(on_ready)

    def take(self) -> bytes | None:
        if not self._running:
            raise StopAsyncIteration
        frames = b"" if self._opened else self._chunks.opening()
        self._opened = True
        try:
            while (arrival := self._choices.take()) is not None:
                index, delta = arrival
                frames += self._chunks.delta(index, delta)
                if delta.finish_reason is not None:
                    self._running -= 1
                    if not self._running:
                        return frames + self._chunks.closing() + DONE
                if frames:
                    return frames
        except StopAsyncIteration:
            raise  # closed meanwhile: nobody reads the rest
        except Exception as failure:
            self._running = 0
            return frames + frame(describe(failure)[1]) + DONE
        return frames or None

    def close(self) -> None:
        self._choices.close()
