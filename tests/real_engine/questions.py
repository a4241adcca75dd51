"""What is asked: the same of every server."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.real_engine.servers import MODEL

HELLO = "Say 'Hello, world! 🎉'"
PETS = "🐱🐶🎉"


class Question(NamedTuple):
    name: str
    path: str
    body: Mapping[str, Any]

    @property
    def is_chat(self) -> bool:
        return "messages" in self.body

    def but(self, **fields: Any) -> "Question":
        return self._replace(body={**self.body, **fields})


def completion(name: str, prompt: str | list[int], **fields: Any) -> Question:
    """Greedy unless `fields` says otherwise."""
    return Question(name, "/v1/completions", {"model": MODEL, "prompt": prompt, "temperature": 0, **fields})


def chat(name: str, *messages: Mapping[str, Any] | str, **fields: Any) -> Question:
    """Greedy unless `fields` says otherwise. A bare string is the user's turn."""
    turns = [{"role": "user", "content": turn} if isinstance(turn, str) else turn for turn in messages]
    return Question(name, "/v1/chat/completions", {"model": MODEL, "messages": turns, "temperature": 0, **fields})


ECHOED_HELLO = completion("echoed hello", HELLO, echo=True, logprobs=1, max_tokens=10)
CHAT_PETS = chat("chat pets", PETS, logprobs=True, top_logprobs=2, max_tokens=8)

COMPLETIONS = (
    completion("plain", "The capital of France is", max_tokens=12, return_token_ids=True),
    completion("echo", HELLO, echo=True, max_tokens=10),
    ECHOED_HELLO,
    ECHOED_HELLO._replace(name="echoed hello as ids").but(return_tokens_as_token_ids=True),
    completion("pets", "I love 🐱🐶🎉 and 🦊", logprobs=3, max_tokens=16, return_token_ids=True),
    completion("half a pet", "I love 🐱🐶🎉 and 🦊", logprobs=3, max_tokens=10, return_token_ids=True),
    completion("pets as ids", "🦊🐻🐼🐨", logprobs=5, max_tokens=16, return_tokens_as_token_ids=True),
    completion("sampled only", "Once upon a time", logprobs=0, max_tokens=24, return_token_ids=True),
    completion("token-id prompt", [504, 3575, 282, 4649, 314], echo=True, logprobs=2, max_tokens=8),
    completion("stop string", "1, 2, 3, 4,", stop=["7"], logprobs=1, max_tokens=24, return_token_ids=True),
    completion("prompt only", "Knitting needs two", echo=True, logprobs=2, max_tokens=0),
    completion("echo and ids", "Rain falls", echo=True, logprobs=1, max_tokens=6, return_token_ids=True),
    completion(
        "seeded",
        "My favourite animal is the",
        temperature=0.9,
        top_p=0.95,
        top_k=40,
        min_p=0.01,
        seed=1234,
        logprobs=2,
        max_tokens=16,
        return_token_ids=True,
    ),
    completion(
        "past the end",
        "Bye.<|im_end|>",
        ignore_eos=True,
        min_tokens=4,
        max_tokens=12,
        logprobs=1,
        return_token_ids=True,
    ),
)
CHATS = (
    CHAT_PETS.but(return_token_ids=True),
    CHAT_PETS._replace(name="chat pets as ids").but(return_tokens_as_token_ids=True),
    chat("chat", "What is the capital of Japan?", max_tokens=16, return_token_ids=True),
    chat("chat, no alternatives", "Name a colour.", logprobs=True, max_tokens=12, return_token_ids=True),
    chat("chat to the end", "Answer with one word: hello", logprobs=True, top_logprobs=1, max_completion_tokens=64),
    chat(
        "chat with a history",
        {"role": "system", "content": "You answer with emoji. 🎉"},
        {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "🐱?"}]},
        {"role": "assistant", "content": "🐱!"},
        {"role": "user", "content": "And 🦊🐻?"},
        logprobs=True,
        top_logprobs=5,
        max_tokens=16,
        return_token_ids=True,
    ),
    chat("chat with a stop string", "Count from 1 to 9.", stop=["5", "zebra"], logprobs=True, max_tokens=48),
    chat("chat, seeded", "Tell me a joke.", temperature=0.8, seed=7, logprobs=True, top_logprobs=2, max_tokens=16),
    chat("chat, the model's own sampling", "Tell me a fact.", temperature=None, seed=42, max_tokens=16, logprobs=True),
)
QUESTIONS = COMPLETIONS + CHATS
