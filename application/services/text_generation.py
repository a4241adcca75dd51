"""One running choice: an engine's tokens, read as text."""

from collections import deque
from collections.abc import Callable

from msgspec.structs import replace

from application.ports.engine import TokenStream
from application.ports.metrics import Metrics
from application.ports.source import OnReady, Source, nobody
from domain.detokenizer import TokenReader
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, ScoredTokens, TextDelta, TokenDelta, TokenUsage, TransferParams
from domain.prompt import Prompt
from domain.speculation import Speculation
from domain.timing import EngineStart, RequestTiming


class TextGeneration(Source[TextDelta]):
    """One choice of an answer. Whoever receives it reads it and closes it, from any task."""

    def __init__(
        self,
        *,
        prompt: Prompt,
        read_prompt: ScoredTokens | None,
        echo: str | None,
        prompt_only: bool,
        show_token_ids: bool,
        tokens: TokenStream,
        reader: TokenReader,
        metrics: Metrics,
    ) -> None:
        self.prompt = prompt
        self.prompt_tokens = len(prompt.token_ids)
        """As they are counted."""
        self.scored_prompt = read_prompt
        """The prompt's tokens and, once it has begun, their scores; None when nobody asked for any."""
        self.echo = echo
        """The prompt's text, when it is to be repeated before the output."""
        self.show_token_ids = show_token_ids
        """Whether logprob tokens are placeholders: the rule, resolved."""
        self.transfer: TransferParams | None = None
        """What the engine last said of the caches it leaves; None when it said nothing."""
        self.on_end: Callable[[], None] = _nothing
        """Called when it ends, however it does."""
        self.speculation: Speculation | None = None
        """How well its drafts were guessed, once it has ended, where the engine tells."""
        self._prompt_only = prompt_only
        self._unread: deque[TokenDelta | EngineFailure | RequestError] = deque()
        """What was taken from the engine before it was asked for: the first output, and all there was at an abort."""
        self._tokens = tokens
        self._reader = reader
        self._metrics = metrics
        self._on_ready: OnReady = nobody
        self._has_begun = False
        self._ended = False
        self._completion_tokens = 0
        self._cached_tokens: int | None = None
        self._created_cache_tokens: int | None = None
        self._start = EngineStart(None, None, None)
        self._last_output_at: float | None = None

    @property
    def usage(self) -> TokenUsage:
        """Tokens so far; after the last delta, all of them."""
        return TokenUsage(self.prompt_tokens, self._completion_tokens, self._cached_tokens, self._created_cache_tokens)

    @property
    def prompt_cells(self) -> int:
        """How many scores of the prompt there are."""
        return self.scored_prompt.cells if self.scored_prompt else 0

    @property
    def timing(self) -> RequestTiming:
        """Of what was read so far."""
        return RequestTiming(self._start, self._last_output_at, self._completion_tokens)

    async def start(self) -> None:
        """Wait for the engine's first output: what it refuses is refused before the answer begins."""
        while (tokens := self._next_tokens()) is None:
            await self.arrival()
        self._unread.appendleft(tokens)

    def listen(self, on_ready: OnReady) -> None:
        self._on_ready = on_ready
        self._tokens.listen(on_ready)

    def take(self) -> TextDelta | None:
        if self._ended:
            raise StopAsyncIteration
        if self._unread or not self._has_begun:
            tokens = self._next_tokens()
        else:
            try:
                tokens = self._tokens.take()
            except (EngineFailure, RequestError):
                self._end("error")
                raise
        if tokens is None:
            return None
        if tokens.produced_at is not None:
            self._last_output_at = tokens.produced_at
        if tokens.transfer is not None:
            self.transfer = tokens.transfer
        if tokens.speculation is not None:
            self.speculation = tokens.speculation
        delta = self._reader.feed(tokens)
        self._completion_tokens += len(delta.token_ids)
        if delta.finish_reason is not None:
            self._end(delta.finish_reason)
        return delta

    def abort(self) -> None:
        """Have it end here, for whoever reads it: in an abort, with what came before, unless that is its end."""
        try:
            while (tokens := self._tokens.take()) is not None:
                self._unread.append(tokens)
        except StopAsyncIteration:
            return  # it has ended by itself
        except (EngineFailure, RequestError) as failure:
            self._unread.append(failure)
            return
        self._unread.append(TokenDelta([], finish_reason=FinishReason.ABORT))
        self._tokens.close()

    def close(self) -> None:
        """Abort it unless it has ended."""
        self._end(FinishReason.ABORT)
        self._on_ready = nobody

    def _next_tokens(self) -> TokenDelta | None:
        """With what takes a closer look: the first, and what is there unread."""
        try:
            tokens = self._next_unread() if self._unread else self._tokens.take()
        except StopAsyncIteration:
            if self._has_begun:
                raise
            self._end("error")
            raise EngineFailure("The engine ended the request without an output.") from None
        except (EngineFailure, RequestError):
            self._end("error")
            raise
        return tokens if tokens is None or self._has_begun else self._begin(tokens)

    def _next_unread(self) -> TokenDelta:
        unread = self._unread.popleft()
        if isinstance(unread, TokenDelta):
            return unread
        raise unread

    def _begin(self, first: TokenDelta) -> TokenDelta:
        self._has_begun = True
        self._cached_tokens, self._created_cache_tokens = first.cached_tokens, first.created_cache_tokens
        self._start = first.start or self._start
        if self.scored_prompt is not None:
            self.scored_prompt = replace(self.scored_prompt, columns=first.prompt_logprobs)
        if self._prompt_only and (first.token_ids or first.finish_reason is not FinishReason.ABORT):
            # Same as vLLM: the engine still samples one token; unlike vLLM, it is in none of ids, rows and usage.
            self._tokens.close()
            rows = first.logprobs and first.logprobs.first(0)
            return replace(first, token_ids=[], logprobs=rows, finish_reason=FinishReason.LENGTH, stop_reason=None)
        return first

    def _end(self, reason: str) -> None:
        if not self._ended:
            self._ended = True
            self._metrics.request_ended(reason, self.usage)
            self.on_end()
            self.on_end = _nothing
        self._tokens.close()
        self._on_ready()  # there is the end to take


def _nothing() -> None: ...
