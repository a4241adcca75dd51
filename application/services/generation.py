"""What chat and completions share: prompts become running generations, and the rule is resolved for them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from application.ports.engine import EngineCore
from application.ports.metrics import Metrics
from application.ports.tokenizer import Tokenizer
from application.requests import TextOutput, TextRequest, Truncation
from application.services.aside import aside
from application.services.choices import Choices
from application.services.render import Render
from application.services.text_generation import TextGeneration
from domain.detokenizer import Detokenizer, PromptReading, read_prompt
from domain.errors import RequestError
from domain.generation import GenerationRequest
from domain.logprobs import check_alternatives
from domain.precedence import shows_token_ids, shows_usage
from domain.prompt import Prompt, PromptNotServable, Room, check_in_vocabulary
from domain.sampling import OutOfRange, SamplingParams
from domain.token_text import unfinished_character

TAIL_TOKENS = 8
"""Tokens at a prompt's end that are looked at for an unfinished character, which has at most 3 bytes."""


class FieldNames(Struct, frozen=True):
    """What the caller calls what it sent: the `param` of an error."""

    prompt: str
    alternatives: str
    max_tokens: str


class SameChoices(RequestError):
    """Several choices were asked for that cannot differ."""


class TruncationTooLong(RequestError):
    """A prompt was to be cut to more than the model's context holds."""


class OutputStart(NamedTuple):
    """What stands before an output."""

    echo: str | None
    """The prompt's text, when it is to be repeated."""
    tail: bytes
    """What its first tokens are read behind."""
    offset: int
    """Where its first token starts, in characters of the choice's text."""


class GenerateText:
    """Starts generations. The server's defaults meet the request's own values here and nowhere else."""

    def __init__(
        self,
        engine: EngineCore,
        tokenizer: Tokenizer,
        render: Render,
        options: ServerOptions,
        defaults: ModelDefaults,
        limits: ModelLimits,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._render = render
        self._options = options
        self._defaults = defaults
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, request: TextRequest, prompts: Mapping[str, Prompt], fields: FieldNames) -> Choices:
        """Admit `request.output.n` requests per prompt, under the id it comes with, and wait for the first output of
        any. Choices are in the order of prompts, those of one prompt together.

        Raises RequestError for what this model does not take, EngineFailure when the engine cannot; then none is left.
        """
        output = request.output
        banned = await aside(sum(map(len, request.bad_words)), lambda: self._render.banned(request.bad_words))
        sampling = self._sampling(request, banned, fields)
        fitted = {key: self._fitted(prompt, request.truncation, fields) for key, prompt in prompts.items()}
        admissions = [
            (prompt, self._children(request_id, prompt, sampling, request, fields))
            for request_id, prompt in fitted.items()
        ]
        show_token_ids = shows_token_ids(
            output.return_tokens_as_token_ids, self._options.default_return_tokens_as_token_ids
        )
        usage_shown = shows_usage(
            at_end=output.usage_at_end,
            so_far=output.usage_so_far,
            forced=self._options.forces_usage,
            prompt_details=self._options.tells_prompt_details,
        )
        choices = Choices(output.n, usage_shown, shows_timing=self._options.tells_timing)
        try:
            for prompt, children in admissions:
                reading = self._reading(prompt, sampling, output)
                for child in children:
                    choices.add(await self._admit(prompt, reading, child, output, show_token_ids))
            await choices.start()
        except BaseException:
            await choices.aclose()
            raise
        return choices

    def room(self, request: TextRequest, fields: FieldNames) -> Room | None:
        """What the request's prompts have to fit into as they are; None where they are cut to fit."""
        return None if request.truncation else Room(self._engine.max_model_len, fields.prompt)

    def _sampling(self, request: TextRequest, banned: Sequence[Sequence[int]], fields: FieldNames) -> SamplingParams:
        """What is asked of the engine, but for what depends on the prompt."""
        sampling, limits = request.sampling, self._limits
        check_alternatives(fields.alternatives, sampling.logprobs, limits.max_logprobs, limits.vocab_size)
        check_alternatives("prompt_logprobs", sampling.prompt_logprobs, limits.max_logprobs, limits.vocab_size)
        for name in ("logprob_token_ids", "stop_token_ids", "allowed_token_ids", "logit_bias"):
            check_in_vocabulary(name, getattr(sampling, name) or (), limits.vocab_size)
        if request.output.n > 1 and sampling.is_greedy:
            raise SameChoices("n must be 1 with greedy sampling: all choices would be the same.", "n")
        return msgspec.structs.replace(
            sampling,
            eos_token_id=self._defaults.eos_token_id,
            stop_token_ids=self._stop_token_ids(sampling),
            ignored_stop_token_ids=self._defaults.stop_token_ids if sampling.ignore_eos else (),
            bad_words_token_ids=banned or None,
        )

    def _fitted(self, prompt: Prompt, truncation: Truncation | None, fields: FieldNames) -> Prompt:
        max_model_len = self._engine.max_model_len
        if truncation is not None:
            if truncation.tokens > max_model_len:
                message = f"truncate_prompt_tokens of {truncation.tokens} is greater than the context, {max_model_len}."
                raise TruncationTooLong(message, "truncate_prompt_tokens")
            if truncation.tokens == 0:
                message = "truncate_prompt_tokens of 0 leaves nothing of the prompt."
                raise PromptNotServable(message, "truncate_prompt_tokens")
            kept = max_model_len - 1 if truncation.tokens < 0 else truncation.tokens
            prompt = prompt.truncated(kept, truncation.keeps_end)
        prompt.check(self._limits.vocab_size, max_model_len, fields.prompt)
        return prompt

    def _children(
        self, request_id: str, prompt: Prompt, sampling: SamplingParams, request: TextRequest, fields: FieldNames
    ) -> list[GenerationRequest]:
        """One request per choice. Same as vLLM: each has an id, and with a seed a seed, of its own."""
        n, scheduling = request.output.n, request.scheduling
        if sampling.routed_experts_prompt_start > len(prompt.token_ids):
            message = f"routed_experts_prompt_start must be at most the prompt's {len(prompt.token_ids)} tokens."
            raise OutOfRange(message, "routed_experts_prompt_start")
        max_tokens = prompt.max_tokens(sampling.max_tokens, self._engine.max_model_len, fields.max_tokens)
        if self._limits.max_output_tokens is not None:
            max_tokens = min(max_tokens, self._limits.max_output_tokens)
        return [
            GenerationRequest(
                request_id=request_id if n == 1 else f"{index}_{request_id}",
                prompt_token_ids=prompt.token_ids,
                sampling=msgspec.structs.replace(
                    sampling,
                    max_tokens=max_tokens,
                    seed=None if sampling.seed is None else sampling.seed + index,
                ),
                priority=scheduling.priority,
                cache_salt=scheduling.cache_salt,
                session_id=scheduling.session_id,
                data_parallel_rank=scheduling.data_parallel_rank,
                adapter=request.adapter,
            )
            for index in range(n)
        ]

    def _reading(self, prompt: Prompt, sampling: SamplingParams, output: TextOutput) -> PromptReading | None:
        """How the prompt's tokens read, if the answer shows them."""
        if sampling.prompt_logprobs is None and not (output.echo and prompt.text is None):
            return None
        pieces = self._tokenizer.piece, self._tokenizer.starting_piece
        return read_prompt(prompt, *pieces, None, is_all=output.prompt_only)

    async def _admit(
        self,
        prompt: Prompt,
        reading: PromptReading | None,
        request: GenerationRequest,
        output: TextOutput,
        show_token_ids: bool,
    ) -> TextGeneration:
        scores_prompt = request.sampling.prompt_logprobs is not None
        start = self._start(prompt, reading, output)
        tokens = await self._engine.submit(request)
        self._metrics.request_started()
        return TextGeneration(
            prompt=prompt,
            read_prompt=reading.scored if reading is not None and scores_prompt else None,
            echo=start.echo,
            prompt_only=output.prompt_only,
            show_token_ids=show_token_ids,
            tokens=tokens,
            detokenizer=Detokenizer(
                self._tokenizer.piece,
                hides_special=output.skip_special_tokens,
                stop=output.stop,
                include_stop=output.include_stop,
                min_tokens=request.sampling.min_tokens,
                prompt_tail=start.tail,
                text_start=start.offset,
            ),
            metrics=self._metrics,
            interval=max(output.interval, self._options.stream_interval),
        )

    def _start(self, prompt: Prompt, reading: PromptReading | None, output: TextOutput) -> OutputStart:
        if prompt.text is not None:
            return OutputStart(prompt.text, b"", len(prompt.text)) if output.echo else OutputStart(None, b"", 0)
        if output.echo and reading is not None:
            return OutputStart(reading.text, reading.held, sum(map(len, reading.scored.texts)))
        tail = [self._tokenizer.piece(token_id) for token_id in prompt.token_ids[-TAIL_TOKENS:]]
        return OutputStart(None, unfinished_character(tail), 0)

    def _stop_token_ids(self, sampling: SamplingParams) -> Sequence[int]:
        if sampling.ignore_eos:
            return sampling.stop_token_ids
        return list(dict.fromkeys([*sampling.stop_token_ids, *self._defaults.stop_token_ids]))
