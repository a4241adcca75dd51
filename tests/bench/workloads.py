"""What is asked of the frontends."""

import random
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

_WORDS = "the of and to in is you that it he was for on are as with his they at be this have from or one had"
WORDS: Final = _WORDS.split()
"""Each a token of its own, with the space before it, in vocabularies made from English."""

MANY: Final = 8
"""How many times more streams, or more requests with short answers, or fewer streams with long prompts."""
SHORT: Final = 4
"""Tokens."""


class Sizes(Struct, frozen=True, kw_only=True):
    """How much is asked. Prompts are of about as many tokens, as words are counted and the template comes on top."""

    streams: int = 64
    requests: int = 4
    """Of each stream, one after the other."""
    prompt: int = 128
    answer: int = 128
    long_prompt: int = 8000
    scored_prompt: int = 4000


class Workload(Struct, frozen=True, kw_only=True):
    """Requests that are streamed, so many at a time, each answered in full length."""

    is_chat: bool = True
    fields: dict[str, Any] = {}
    streams: int
    requests: int
    """In all."""
    prompt: int
    answer: int
    scored_prompt: int = 0
    """Tokens of a prompt that one request beside the others wants scored, in one piece. 0: there is none."""
    long_prompt: int = 0
    """Tokens of a prompt that another has answered in one piece. 0: there is none."""

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.is_chat else "/v1/completions"

    @property
    def tokens(self) -> int:
        """Of all answers that are streamed."""
        return self.requests * self.answer

    def bodies(self, seed: int) -> Iterator[dict[str, Any]]:
        """One for each request; other prompts for another seed."""
        choose = random.Random(seed)
        for _ in range(self.requests):
            body = self._body(choose, self.prompt, self.answer)
            yield body | {"stream": True, "stream_options": {"include_usage": True}} | self.fields

    def bodies_beside(self, seed: int) -> Iterator[dict[str, Any]]:
        """One for each request beside the others."""
        choose = random.Random(seed)
        if self.scored_prompt:
            yield self._body(choose, self.scored_prompt, 1) | {"prompt_logprobs": 20}
        if self.long_prompt:
            yield self._body(choose, self.long_prompt, 1)

    def _body(self, choose: random.Random, prompt: int, answer: int) -> dict[str, Any]:
        text = " ".join(choose.choices(WORDS, k=prompt))
        asked = {"messages": [{"role": "user", "content": text}]} if self.is_chat else {"prompt": text}
        return {"model": MODEL, "max_tokens": answer, "ignore_eos": True, "temperature": 0} | asked


MODEL: Final = "bench"
"""What the model is called by every frontend."""


def workloads(sizes: Sizes) -> dict[str, Workload]:
    requests = sizes.streams * sizes.requests

    def like(**other: Any) -> Workload:
        usual = {"streams": sizes.streams, "requests": requests, "prompt": sizes.prompt, "answer": sizes.answer}
        return Workload(**usual | other)

    ids = {"return_tokens_as_token_ids": True}
    few = max(1, sizes.streams // MANY)
    return {
        "chat": like(),
        "chat-0": like(fields={"logprobs": True, "top_logprobs": 0}),
        "chat-5": like(fields={"logprobs": True, "top_logprobs": 5}),
        "chat-20": like(fields={"logprobs": True, "top_logprobs": 20}),
        "chat-20-ids": like(fields={"logprobs": True, "top_logprobs": 20, **ids}),
        "completions": like(is_chat=False),
        "completions-5-ids": like(is_chat=False, fields={"logprobs": 5, **ids}),
        "short": like(answer=SHORT, requests=MANY * requests),
        "long-prompts": like(prompt=sizes.long_prompt, streams=few, requests=few * sizes.requests),
        "many-streams": like(streams=MANY * sizes.streams, requests=MANY * sizes.streams),
        "beside-scored-prompt": like(is_chat=False, scored_prompt=sizes.scored_prompt),
        "beside-large-prompts": like(is_chat=False, scored_prompt=sizes.scored_prompt, long_prompt=sizes.long_prompt),
    }
