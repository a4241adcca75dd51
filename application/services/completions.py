"""Text completion."""

from collections.abc import Sequence

from msgspec import Struct

from application.services.generation import FieldNames, GenerateText, TextGeneration, TextOutput
from application.services.render import Render
from domain.sampling import SamplingParams

FIELDS = FieldNames(prompt="prompt", alternatives="logprobs", max_tokens="max_tokens")


class Completion(Struct, frozen=True, kw_only=True):
    """A text to go on with, and how. Nothing of it depends on how this server is set up."""

    request_id: str
    prompt: str | Sequence[int]
    sampling: SamplingParams
    output: TextOutput


class CompleteText:
    """Goes on with a text or a token sequence."""

    def __init__(self, render: Render, generate: GenerateText) -> None:
        self._render = render
        self._generate = generate

    async def __call__(self, completion: Completion) -> TextGeneration:
        prompt = self._render.text(completion.prompt)
        return await self._generate(completion.request_id, prompt, completion.sampling, completion.output, FIELDS)
