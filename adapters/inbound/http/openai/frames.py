"""A running generation as the frames of a streamed answer: the same for every endpoint."""

from typing import Protocol, Self

from adapters.inbound.http.errors import describe
from adapters.inbound.http.sse import DONE, frame
from application.services.generation import TextGeneration
from domain.generation import TextDelta, TokenUsage


class ChunkEncoder(Protocol):
    """What one endpoint makes of a generation. Each method gives whole frames, or nothing."""

    def opening(self) -> bytes:
        """What comes before the first delta."""

    def delta(self, delta: TextDelta, usage: TokenUsage) -> bytes:
        """The chunk of one delta; nothing when it carries nothing a client can see."""

    def closing(self, usage: TokenUsage) -> bytes:
        """What comes after the last delta."""


class GenerationFrames:
    """Frames of a generation, to the end or to its failure. Closing it closes the generation."""

    def __init__(self, generation: TextGeneration, chunks: ChunkEncoder) -> None:
        self._generation = generation
        self._chunks = chunks
        self._opened = False
        self._done = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._done:
            raise StopAsyncIteration
        frames = b"" if self._opened else self._chunks.opening()
        self._opened = True
        try:
            while True:
                delta = await anext(self._generation)
                frames += self._chunks.delta(delta, self._generation.usage)
                if delta.finish_reason is not None:
                    self._done = True
                    return frames + self._chunks.closing(self._generation.usage) + DONE
                if frames:
                    return frames
        except StopAsyncIteration:
            raise  # closed meanwhile: nobody reads the rest
        except Exception as failure:
            self._done = True
            return frames + frame(describe(failure)[1]) + DONE

    async def aclose(self) -> None:
        await self._generation.aclose()
