"""Texts and conversations to tokens, and tokens to text, with no generation."""

from collections.abc import Sequence

from application.model import ModelLimits
from application.ports.tokenizer import Tokenizer
from application.requests import Conversation, Text
from application.services.aside import TOKEN, one_by_one
from application.services.render import Render
from domain.prompt import Prompt, check_in_vocabulary


class Tokenize:
    """The tokens that the services which generate would send to an engine."""

    def __init__(self, render: Render, tokenizer: Tokenizer, limits: ModelLimits, max_model_len: int) -> None:
        self._render = render
        self._tokenizer = tokenizer
        self._limits = limits
        self.max_model_len = max_model_len
        """Told, and nothing is held to it."""

    async def __call__(self, source: Text | Conversation) -> Prompt:
        if isinstance(source, Conversation):
            return await self._render.conversation(source)
        [prompt] = await self._render.texts([source.text], source.add_special_tokens)
        return prompt

    async def entries(self, token_ids: Sequence[int]) -> Sequence[str]:
        """How the vocabulary writes them."""
        return await one_by_one(
            TOKEN * len(token_ids), lambda: [self._tokenizer.entry(token_id) for token_id in token_ids]
        )

    async def text_of(self, token_ids: Sequence[int], param: str) -> str:
        """Special tokens shown. Raises OutOfVocabulary, naming the request field `param`."""
        check_in_vocabulary(param, token_ids, self._limits.vocab_size)
        return await one_by_one(len(token_ids), lambda: self._tokenizer.decode(token_ids))
