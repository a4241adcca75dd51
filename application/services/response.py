"""The response stage: what an answer shows of tokens, whoever generated them."""

from typing import NamedTuple

from application.options import ServerOptions
from application.ports.engine import TokenStream
from application.ports.metrics import Metrics
from application.ports.tokenizer import Tokenizer
from application.requests import TextOutput
from application.services.aside import TOKEN, one_by_one
from application.services.choices import Choices
from application.services.text_generation import TextGeneration
from domain.detokenizer import Detokenizer, PromptReading, TokenReader, read_prompt
from domain.generation import ScoredTokens
from domain.precedence import shows_token_ids, shows_usage
from domain.prompt import Prompt
from domain.sampling import SamplingParams
from domain.token_text import unfinished_character

TAIL_TOKENS = 8
"""Tokens at a prompt's end that are looked at for an unfinished character, which has at most 3 bytes."""


class OutputStart(NamedTuple):
    """What stands before an output: the same for all choices of a prompt."""

    prompt: Prompt
    scored: ScoredTokens | None
    """The prompt's tokens as they read, if their scores are shown."""
    echo: str | None
    """The prompt's text, when it is to be repeated."""
    tail: bytes
    """What its first tokens are read behind."""
    offset: int
    """Where its first token starts, in characters of the choice's text."""


class ResponseStage:
    """The server's defaults meet the request's own values here and nowhere else."""

    def __init__(self, tokenizer: Tokenizer, options: ServerOptions) -> None:
        self._tokenizer = tokenizer
        self._options = options

    def choices(self, output: TextOutput) -> Choices:
        """None of them yet."""
        options = self._options
        return Choices(
            output.n,
            shows_usage(
                at_end=output.usage_at_end,
                so_far=output.usage_so_far,
                forced=options.forces_usage,
                prompt_details=options.tells_prompt_details,
            ),
            shows_timing=options.tells_timing,
            interval=max(output.interval, options.stream_interval),
        )

    async def start(self, prompt: Prompt, sampling: SamplingParams, output: TextOutput) -> OutputStart:
        """Long prompts hold nobody up while they are read."""
        is_scored = sampling.prompt_logprobs is not None
        scored, is_read = None, is_scored or (output.echo and prompt.text is None)
        if is_read:
            reading = await one_by_one(
                TOKEN * len(prompt.token_ids), lambda: self._read(prompt, is_all=output.prompt_only)
            )
            scored = reading.scored if is_scored else None
        if prompt.text is not None:
            echo = prompt.text if output.echo else None
            return OutputStart(prompt, scored, echo, b"", len(echo or ""))
        if is_read and output.echo:
            return OutputStart(prompt, scored, reading.text, reading.held, sum(map(len, reading.scored.texts)))
        tail = [self._tokenizer.piece(token_id) for token_id in prompt.token_ids[-TAIL_TOKENS:]]
        return OutputStart(prompt, scored, None, unfinished_character(tail), 0)

    def _read(self, prompt: Prompt, *, is_all: bool) -> PromptReading:
        return read_prompt(prompt, self._tokenizer.piece, self._tokenizer.starting_piece, None, is_all=is_all)

    def choice(
        self, start: OutputStart, reader: TokenReader, output: TextOutput, tokens: TokenStream, metrics: Metrics
    ) -> TextGeneration:
        """One choice of what follows a prompt."""
        options = self._options
        return TextGeneration(
            prompt=start.prompt,
            read_prompt=start.scored,
            echo=start.echo,
            prompt_only=output.prompt_only,
            show_token_ids=shows_token_ids(
                output.return_tokens_as_token_ids, options.default_return_tokens_as_token_ids
            ),
            tokens=tokens,
            reader=reader,
            metrics=metrics,
        )

    def reader(self, start: OutputStart, sampling: SamplingParams, output: TextOutput) -> Detokenizer:
        return Detokenizer(
            self._tokenizer.piece,
            hides_special=output.skip_special_tokens,
            stop=output.stop,
            include_stop=output.include_stop,
            min_tokens=sampling.min_tokens,
            prompt_tail=start.tail,
            text_start=start.offset,
        )
