"""What chat and completions share: a prompt becomes a running generation, and the rule is resolved for it."""

from collections.abc import AsyncIterator, Sequence

import msgspec
from msgspec import Struct

from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from application.ports.engine import EngineCore, TokenStream
from application.ports.metrics import Metrics
from application.ports.tokenizer import Tokenizer
from application.requests import TextOutput
from domain.detokenizer import Detokenizer, PieceOf, score_prompt
from domain.errors import EngineFailure, RequestError
from domain.generation import FinishReason, GenerationRequest, ScoredTokens, TextDelta, TokenDelta, TokenUsage
from domain.logprobs import check_alternatives
from domain.precedence import shows_token_ids
from domain.prompt import Prompt, check_in_vocabulary
from domain.sampling import SamplingParams
from domain.token_text import unfinished_character

TAIL_TOKENS = 8
"""Tokens at a prompt's end that are looked at for an unfinished character, which has at most 3 bytes."""


class FieldNames(Struct, frozen=True):
    """What the caller calls what it sent: the `param` of an error."""

    prompt: str
    alternatives: str
    max_tokens: str


class Echo(Struct, frozen=True):
    """The prompt, repeated before the output."""

    text: str
    scored: ScoredTokens | None
    """None when no scores were asked for."""


class TextGeneration(AsyncIterator[TextDelta]):
    """A running completion. Whoever receives it closes it, from the task that reads it or another.

    Its first output is there already, so whatever fails from here on fails in the middle of an answer.
    """

    def __init__(
        self,
        *,
        request_id: str,
        prompt: Prompt,
        show_token_ids: bool,
        piece_of: PieceOf,
        tokens: TokenStream,
        detokenizer: Detokenizer,
        metrics: Metrics,
    ) -> None:
        self.request_id = request_id
        self.prompt = prompt
        self.show_token_ids = show_token_ids
        """Whether logprob tokens are placeholders: the rule, resolved."""
        self.piece_of = piece_of
        self.echo: Echo | None = None
        self._tokens = tokens
        self._first: TokenDelta | None = None
        self._detokenizer = detokenizer
        self._metrics = metrics
        self._ended = False
        self._completion_tokens = 0
        self._cached_tokens: int | None = None

    @property
    def usage(self) -> TokenUsage:
        """Tokens so far; after the last delta, all of them."""
        return TokenUsage(len(self.prompt.token_ids), self._completion_tokens, self._cached_tokens)

    async def start(self, echoed: str | None, scored: bool, prompt_only: bool) -> None:
        """Wait for the engine's first output: what it refuses is refused before the answer begins."""
        try:
            first = await self._next_tokens()
        except StopAsyncIteration:
            await self._end("error")
            raise EngineFailure("The engine ended the request without an output.") from None
        self._cached_tokens = first.cached_tokens
        if echoed is not None:
            columns = first.prompt_logprobs
            rows = score_prompt(self.prompt.token_ids, self.piece_of, columns, is_all=prompt_only) if scored else None
            self.echo = Echo(echoed, rows)
        if prompt_only:
            # Same as vLLM: the engine still samples one token; unlike vLLM, it is in none of ids, rows and usage.
            await self._tokens.aclose()
            first = TokenDelta([], first.logprobs and first.logprobs.first(0), finish_reason=FinishReason.LENGTH)
        self._first = first

    async def __anext__(self) -> TextDelta:
        if self._ended:
            raise StopAsyncIteration
        tokens, self._first = self._first, None
        if tokens is None:
            tokens = await self._next_tokens()
        delta = self._detokenizer.feed(tokens)
        self._completion_tokens += len(delta.token_ids)
        if delta.finish_reason is not None:
            await self._end(delta.finish_reason)
        return delta

    async def aclose(self) -> None:
        """Abort it unless it has ended."""
        await self._end(FinishReason.ABORT)

    async def _next_tokens(self) -> TokenDelta:
        try:
            return await anext(self._tokens)
        except (EngineFailure, RequestError):
            await self._end("error")
            raise

    async def _end(self, reason: str) -> None:
        if not self._ended:
            self._ended = True
            self._metrics.request_ended(reason, self.usage)
        await self._tokens.aclose()


class GenerateText:
    """Starts generations. The server's defaults meet the request's own values here and nowhere else."""

    def __init__(
        self,
        engine: EngineCore,
        tokenizer: Tokenizer,
        options: ServerOptions,
        defaults: ModelDefaults,
        limits: ModelLimits,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._options = options
        self._defaults = defaults
        self._limits = limits
        self._metrics = metrics

    async def __call__(
        self, request_id: str, prompt: Prompt, sampling: SamplingParams, output: TextOutput, fields: FieldNames
    ) -> TextGeneration:
        """Admit the request and wait for its first output.

        Raises RequestError for what this model does not take, EngineFailure when the engine cannot.
        """
        max_model_len = self._engine.max_model_len
        prompt.check(self._limits.vocab_size, max_model_len, fields.prompt)
        check_alternatives(fields.alternatives, sampling.logprobs, self._limits.max_logprobs, self._limits.vocab_size)
        check_in_vocabulary("stop_token_ids", sampling.stop_token_ids, self._limits.vocab_size)
        request = GenerationRequest(
            request_id=request_id,
            prompt_token_ids=prompt.token_ids,
            sampling=msgspec.structs.replace(
                sampling,
                max_tokens=prompt.max_tokens(sampling.max_tokens, max_model_len, fields.max_tokens),
                eos_token_id=self._defaults.eos_token_id,
                stop_token_ids=self._stop_token_ids(sampling),
            ),
        )
        tail, echoed = b"", None
        if prompt.text is None and not output.prompt_only:
            tail = unfinished_character([self._tokenizer.piece(i) for i in prompt.token_ids[-TAIL_TOKENS:]])
        if output.echo:
            echoed = self._echoed_text(prompt, tail)
        generation = TextGeneration(
            request_id=request_id,
            prompt=prompt,
            show_token_ids=shows_token_ids(
                output.return_tokens_as_token_ids, self._options.default_return_tokens_as_token_ids
            ),
            piece_of=self._tokenizer.piece,
            tokens=await self._engine.submit(request),
            detokenizer=Detokenizer(
                self._tokenizer.piece,
                hides_special=output.skip_special_tokens,
                stop=output.stop,
                min_tokens=sampling.min_tokens,
                prompt_tail=tail,
                text_start=len(echoed or ""),
            ),
            metrics=self._metrics,
        )
        self._metrics.request_started()
        try:
            await generation.start(echoed, sampling.logprobs is not None, output.prompt_only)
        except BaseException:
            await generation.aclose()
            raise
        return generation

    def _stop_token_ids(self, sampling: SamplingParams) -> Sequence[int]:
        if sampling.ignore_eos:
            return sampling.stop_token_ids
        return list(dict.fromkeys([*sampling.stop_token_ids, *self._defaults.stop_token_ids]))

    def _echoed_text(self, prompt: Prompt, tail: bytes) -> str:
        if prompt.text is not None:
            return prompt.text
        text = self._tokenizer.decode(prompt.token_ids)
        # the output completes the character that the prompt begins
        return text[:-1] if tail and text.endswith("\ufffd") else text
