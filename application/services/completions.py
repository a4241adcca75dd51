"""Text completion."""

from application.requests import Completion
from application.services.choices import Choices
from application.services.generation import GenerateText
from application.services.prepare import Prepare


class CompleteText:
    """Goes on with a text or a token sequence."""

    def __init__(self, prepare: Prepare, generate: GenerateText) -> None:
        self._prepare = prepare
        self._generate = generate

    async def __call__(self, completion: Completion) -> Choices:
        return await self._generate(await self._prepare.completion(completion), completion.output)
