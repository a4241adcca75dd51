"""Text completion."""

from application.requests import Completion
from application.services.generation import FieldNames, GenerateText, TextGeneration
from application.services.render import Render

FIELDS = FieldNames(prompt="prompt", alternatives="logprobs", max_tokens="max_tokens")


class CompleteText:
    """Goes on with a text or a token sequence."""

    def __init__(self, render: Render, generate: GenerateText) -> None:
        self._render = render
        self._generate = generate

    async def __call__(self, completion: Completion) -> TextGeneration:
        prompt = self._render.text(completion.prompt)
        return await self._generate(completion.request_id, prompt, completion.sampling, completion.output, FIELDS)
