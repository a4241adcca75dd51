"""What one request's reader waits at."""

from collections import deque
from collections.abc import Callable

from adapters.outbound.llamacpp_engine.decoding import Outcome, is_last
from application.ports.engine import TokenStream
from application.ports.source import OnReady, nobody
from domain.generation import TokenDelta


class LlamaCppStream(TokenStream):
    """Filled a step at a time. `abort` is called once, if it is closed before its end."""

    def __init__(self, abort: Callable[[], None]) -> None:
        self._abort = abort
        self._on_ready: OnReady = nobody
        self._outcomes: deque[Outcome] = deque()
        self._is_complete = False
        """Whether its last outcome is there, read or not."""
        self._ended = False

    def put(self, outcome: Outcome) -> None:
        if self._is_complete or self._ended:
            return
        self._outcomes.append(outcome)
        self._is_complete = is_last(outcome)
        self._on_ready()

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready

    def take(self) -> TokenDelta | None:
        if self._ended:
            raise StopAsyncIteration
        if not self._outcomes:
            return None
        outcome = self._outcomes.popleft()
        if self._is_complete and not self._outcomes:
            self._ended = True
            self._on_ready()
        if isinstance(outcome, TokenDelta):
            return outcome
        raise outcome

    def close(self) -> None:
        on_ready, self._on_ready = self._on_ready, nobody
        if self._ended:
            return
        self._ended = True
        self._outcomes.clear()
        if not self._is_complete:
            self._abort()
        on_ready()
