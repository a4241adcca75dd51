"""Requests whose answers, and the engine's messages for them, are recorded from a real model."""

from typing import Any, NamedTuple

from tests.http.serving import CHAT, COMPLETIONS

PETS = "🐱🐶🎉"
HELLO = "Say 'Hello, world! 🎉'"


class Case(NamedTuple):
    path: str
    fields: dict[str, Any]

    def body(self, *, stream: bool) -> dict[str, Any]:
        return {"request_id": "golden", "temperature": 0, **self.fields, **({"stream": True} if stream else {})}

    @property
    def streams(self) -> bool:
        return not self.fields.get("prompt_logprobs")


def _chat(text: str, **fields: Any) -> Case:
    turns = [{"role": "user", "content": text}]
    return Case(CHAT, {"messages": turns, "logprobs": True, "return_token_ids": True, **fields})


def _completion(prompt: str, **fields: Any) -> Case:
    return Case(COMPLETIONS, {"prompt": prompt, "return_token_ids": True, **fields})


CASES = {
    "chat about pets": _chat(PETS, top_logprobs=5, max_tokens=24),
    "pets go on": _completion(f"I love {PETS} and", logprobs=5, max_tokens=16),
    "echoed hello": _completion(HELLO, echo=True, logprobs=1, max_tokens=10),
    "scored hello": _completion(HELLO, prompt_logprobs=2, logprobs=0, max_tokens=2),
    "chosen ids": _chat(
        f"Is {PETS} a party?", top_logprobs=0, logprob_token_ids=[10813, 234, 2, 10813, 28], max_tokens=6
    ),
}
