"""What of the scores an answer shows."""

from msgspec import Raw, Struct

from adapters.inbound.http.openai.logprobs import LogprobDisplay
from adapters.inbound.http.openai.prompt_logprobs import PromptDisplay
from application.services.text_generation import TextGeneration


class Rows(Struct, frozen=True):
    """How wide its rows are, and how they show tokens: the same for every choice."""

    display: LogprobDisplay
    prompt_display: PromptDisplay
    alternatives: int | None
    """Per token (-1: all there are); None shows no rows."""
    prompt_alternatives: int | None
    """Per entry of `prompt_logprobs`; None leaves it null."""

    def prompt_logprobs(self, generation: TextGeneration) -> Raw | None:
        if generation.scored_prompt is None or self.prompt_alternatives is None:
            return None
        return Raw(self.prompt_display.logprobs(generation.scored_prompt, self.prompt_alternatives))
