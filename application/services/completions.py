"""Text completion."""

from application.requests import Completion
from application.services.aside import aside
from application.services.choices import Choices
from application.services.generation import FieldNames, GenerateText
from application.services.render import Render
from domain.prompt import Prompt

FIELDS = FieldNames(prompt="prompt", alternatives="logprobs", max_tokens="max_tokens")


class CompleteText:
    """Goes on with a text or a token sequence."""

    def __init__(self, render: Render, generate: GenerateText) -> None:
        self._render = render
        self._generate = generate

    async def __call__(self, completion: Completion) -> Choices:
        prompts = await aside(sum(map(len, completion.prompts)), lambda: self._prompts(completion))
        return await self._generate(completion, prompts, FIELDS)

    def _prompts(self, completion: Completion) -> dict[str, Prompt]:
        locate = completion.output.echo and completion.sampling.prompt_logprobs is not None
        room = self._generate.room(completion, FIELDS)
        # Same as vLLM: the engine knows each prompt by its place.
        return {
            f"{completion.request_id}-{index}": self._render.text(prompt, completion.add_special_tokens, locate, room)
            for index, prompt in enumerate(completion.prompts)
        }
