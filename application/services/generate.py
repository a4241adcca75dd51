"""Tokens in, tokens out."""

from application.options import ServerOptions
from application.requests import Continuation
from application.services.choices import Choices
from application.services.generation import GenerateText
from application.services.prepare import Prepare
from domain.errors import RequestError


class TextNotRead(RequestError):
    """The text of an output was asked for, or a stop string in it, where no tokens are read."""


class GenerateTokens:
    """Goes on with a token sequence. No text is made of the tokens, unless it is asked for."""

    def __init__(self, prepare: Prepare, generate: GenerateText, options: ServerOptions) -> None:
        self._prepare = prepare
        self._generate = generate
        self._options = options

    async def __call__(self, continuation: Continuation) -> Choices:
        output = continuation.output
        if output.reads_tokens and self._options.tokens_only:
            param = "stop" if output.stop else "output_mode"
            raise TextNotRead(f"{param}: no text is made of tokens by a server with --tokens-only.", param)
        return await self._generate([await self._prepare.tokens(continuation)], output)
