"""Tokens shown several at a time."""

from application.ports.source import OnReady, Source, nobody
from domain.errors import EngineFailure, RequestError
from domain.generation import TextDelta, joined


class Gathered(Source[TextDelta]):
    """The deltas of a generation: the first by itself, then as many tokens together as are shown at a time, or all
    there are. What fails is told after what came before it."""

    def __init__(self, generation: Source[TextDelta], interval: int) -> None:
        self._generation = generation
        self._interval = interval
        self._has_begun = False
        self._deltas: list[TextDelta] = []
        self._tokens = 0
        """In them."""
        self._failure: EngineFailure | RequestError | None = None
        self._on_ready: OnReady = nobody

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready
        self._generation.listen(on_ready)

    def take(self) -> TextDelta | None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        while (delta := self._next()) is not None:
            self._deltas.append(delta)
            self._tokens += len(delta.token_ids)
            if self._tokens >= self._interval or delta.finish_reason is not None or not self._has_begun:
                self._has_begun = True
                return self._all()
        return self._all() if self._failure is not None else None

    def rest(self) -> TextDelta | None:
        """What was gathered so far and is not to wait for more."""
        return self._all() if self._deltas else None

    def close(self) -> None:
        self._failure = None
        self._generation.close()
        self._on_ready = nobody

    def _next(self) -> TextDelta | None:
        try:
            return self._generation.take()
        except (EngineFailure, RequestError) as failure:
            if not self._deltas:
                raise
            self._failure = failure
            self._on_ready()
            return None

    def _all(self) -> TextDelta:
        deltas, self._deltas, self._tokens = self._deltas, [], 0
        return joined(deltas)
