"""What is asked: the same of every server."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.real_engine.servers import MODEL

HELLO = "Say 'Hello, world! 🎉'"
PETS = "🐱🐶🎉"
PETS_AND_FOX = "I love 🐱🐶🎉 and 🦊"
RHYME = "The cat sat on the mat and the dog lay on the log while the bird sang a word of what it had heard."
"""Long enough for tokens to be equally likely somewhere."""
TWO_PROMPTS = ["Dogs bark. Cats", "A party 🎉, a cat"]

PART_OF_PARTY = [504, 3575, 10813, 232]
"""Ends inside a character: the first two tokens of `🎉`, which has three."""
BROKEN_BY_LETTERS = [504, 10813, 57, 2606, 10813, 232, 227]
"""Holds the first token of an emoji, which no emoji follows, and then a whole one."""
TURN = [1, 4093, 198, 26843, 2, 198, 1, 520, 9531, 198]
"""A user's turn as the chat template writes it, special tokens and all."""
A_OR_B = [330, 389]
"""` A` and ` B`."""
PARTS_AND_SPECIALS = [234, 10813, 2, 126, 330]
"""Parts of characters, a special token and ` A`."""


class Question(NamedTuple):
    name: str
    path: str
    body: Mapping[str, Any]

    @property
    def is_chat(self) -> bool:
        return "messages" in self.body

    @property
    def is_streamable(self) -> bool:
        """Scores of a prompt are not streamed."""
        return not self.body.get("prompt_logprobs")

    @property
    def prompts(self) -> Sequence[str | None]:
        """The texts that the choices go on with; None for token ids. A chat's is not told here: ""."""
        prompt = self.body.get("prompt", "")
        several = prompt if not isinstance(prompt, str) and not isinstance(prompt[0], int) else [prompt]
        texts = [each if isinstance(each, str) else None for each in several]
        return [text for text in texts for _ in range(self.body.get("n") or 1)]

    def named(self, name: str) -> "Question":
        return self._replace(name=name)

    def but(self, **fields: Any) -> "Question":
        return self._replace(body={**self.body, **fields})


def completion(name: str, prompt: str | Sequence[str | int | list[int]], **fields: Any) -> Question:
    """Greedy unless `fields` says otherwise."""
    return Question(name, "/v1/completions", {"model": MODEL, "prompt": prompt, "temperature": 0, **fields})


def chat(name: str, *messages: Mapping[str, Any] | str, **fields: Any) -> Question:
    """Greedy unless `fields` says otherwise. A bare string is the user's turn."""
    turns = [{"role": "user", "content": turn} if isinstance(turn, str) else turn for turn in messages]
    return Question(name, "/v1/chat/completions", {"model": MODEL, "messages": turns, "temperature": 0, **fields})


ECHOED_HELLO = completion("echoed hello", HELLO, echo=True, logprobs=1, max_tokens=10)
CHAT_PETS = chat("chat pets", PETS, logprobs=True, top_logprobs=2, max_tokens=8)
CHAT_PETS_BY_FIVE = chat("chat pets by five", PETS, logprobs=True, top_logprobs=5, max_tokens=24)
PAST_THE_END = completion(
    "past the end",
    "Bye.<|im_end|>",
    ignore_eos=True,
    min_tokens=4,
    max_tokens=12,
    logprobs=1,
    return_token_ids=True,
)
CHAT_TO_THE_END = chat(
    "chat to the end", "Answer with one word: hello", logprobs=True, top_logprobs=1, max_completion_tokens=64
)

COMPLETIONS = (
    completion("plain", "The capital of France is", max_tokens=12, return_token_ids=True),
    completion("pets", PETS_AND_FOX, logprobs=3, max_tokens=16, return_token_ids=True),
    completion("half a pet", PETS_AND_FOX, logprobs=3, max_tokens=10, return_token_ids=True),
    completion("pets as ids", "🦊🐻🐼🐨", logprobs=5, max_tokens=16, return_tokens_as_token_ids=True),
    completion("pets by twenty", PETS, logprobs=20, max_tokens=6, return_token_ids=True),
    completion("sampled only", "Once upon a time", logprobs=0, max_tokens=24, return_token_ids=True),
    completion("stop string", "1, 2, 3, 4,", stop=["7"], logprobs=1, max_tokens=24, return_token_ids=True),
    completion("stop strings", "1, 2, 3, 4,", stop=["zebra", "6, 7", " 6,"], max_tokens=24, return_token_ids=True),
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
    PAST_THE_END,
    PAST_THE_END.named("past the end, specials shown").but(skip_special_tokens=False),
    completion("part of a character", PART_OF_PARTY, logprobs=2, max_tokens=6, return_token_ids=True),
)
ECHOES = (
    completion("echo", HELLO, echo=True, max_tokens=10),
    ECHOED_HELLO,
    ECHOED_HELLO.named("echoed hello as ids").but(return_tokens_as_token_ids=True),
    completion("echoed pets", PETS, echo=True, logprobs=1, max_tokens=6),
    completion("echo, sampled only", PETS_AND_FOX, echo=True, logprobs=0, max_tokens=4),
    completion("echo and ids", "Rain falls", echo=True, logprobs=1, max_tokens=6, return_token_ids=True),
    completion("token-id prompt", [504, 3575, 282, 4649, 314], echo=True, logprobs=2, max_tokens=8),
    completion("echoed turn", TURN, echo=True, logprobs=1, max_tokens=6),
    completion("echoed turn, specials shown", TURN, echo=True, logprobs=1, max_tokens=16, skip_special_tokens=False),
    completion("echoed part of a character", PART_OF_PARTY, echo=True, logprobs=2, max_tokens=6),
    completion("echoed broken character", BROKEN_BY_LETTERS, echo=True, logprobs=2, max_tokens=4),
    completion("prompt only", "Knitting needs two", echo=True, logprobs=2, max_tokens=0),
    completion("prompt only, ids", PART_OF_PARTY, echo=True, logprobs=1, max_tokens=0, return_token_ids=True),
)
SEVERAL_PROMPTS = (
    completion("two prompts", TWO_PROMPTS, logprobs=1, max_tokens=6, return_token_ids=True),
    completion("two prompts as ids", TWO_PROMPTS, logprobs=1, max_tokens=6, return_tokens_as_token_ids=True),
    completion("two prompts echoed", TWO_PROMPTS, echo=True, logprobs=1, max_tokens=6),
    completion("two prompts only", TWO_PROMPTS, echo=True, logprobs=1, max_tokens=0),
    completion("two token-id prompts", [TURN, PART_OF_PARTY], logprobs=2, max_tokens=6, return_token_ids=True),
    completion("two token-id prompts echoed", [TURN, PART_OF_PARTY], echo=True, logprobs=2, max_tokens=6),
)
PROMPT_LOGPROBS = (
    completion("prompt logprobs", HELLO, prompt_logprobs=2, max_tokens=4, return_token_ids=True),
    completion("prompt logprobs of none", HELLO, prompt_logprobs=0, logprobs=1, max_tokens=4, return_token_ids=True),
    completion("prompt logprobs of two", TWO_PROMPTS, prompt_logprobs=1, max_tokens=4, return_token_ids=True),
    completion("prompt logprobs, specials", TURN, prompt_logprobs=2, max_tokens=4, return_token_ids=True),
    completion("prompt logprobs, broken", BROKEN_BY_LETTERS, prompt_logprobs=5, max_tokens=4, return_token_ids=True),
    completion("prompt logprobs by twenty", RHYME, prompt_logprobs=20, max_tokens=1, return_token_ids=True),
    ECHOED_HELLO.named("echo and prompt logprobs").but(prompt_logprobs=3),
    ECHOED_HELLO.named("echo and prompt logprobs as ids").but(prompt_logprobs=3, return_tokens_as_token_ids=True),
    ECHOED_HELLO.named("echo and fewer prompt logprobs").but(logprobs=3, prompt_logprobs=1),
    chat("chat prompt logprobs", PETS, prompt_logprobs=2, max_tokens=4, return_token_ids=True),
    CHAT_PETS.named("chat both logprobs").but(prompt_logprobs=1, return_token_ids=True),
)
CHOSEN_IDS = (
    completion(
        "chosen ids", "Is it A or B?", logprobs=1, logprob_token_ids=A_OR_B, max_tokens=4, return_token_ids=True
    ),
    completion(
        "chosen parts", PETS, logprobs=0, logprob_token_ids=PARTS_AND_SPECIALS, max_tokens=6, return_token_ids=True
    ),
    ECHOED_HELLO.named("echo and chosen ids").but(logprob_token_ids=A_OR_B),
    chat(
        "chat chosen ids",
        "Is it A or B?",
        logprobs=True,
        top_logprobs=1,
        logprob_token_ids=A_OR_B,
        max_tokens=4,
        return_token_ids=True,
    ),
    CHAT_PETS.named("chat chosen parts").but(logprob_token_ids=PARTS_AND_SPECIALS, return_token_ids=True),
    CHAT_PETS.named("chat chosen parts as ids").but(
        logprob_token_ids=PARTS_AND_SPECIALS, return_tokens_as_token_ids=True
    ),
)
CHATS = (
    CHAT_PETS.but(return_token_ids=True),
    CHAT_PETS.named("chat pets as ids").but(return_tokens_as_token_ids=True),
    CHAT_PETS_BY_FIVE.but(return_token_ids=True),
    CHAT_PETS_BY_FIVE.named("chat pets by five as ids").but(return_tokens_as_token_ids=True),
    chat("chat", "What is the capital of Japan?", max_tokens=16, return_token_ids=True),
    chat("chat, no alternatives", "Name a colour.", logprobs=True, max_tokens=12, return_token_ids=True),
    CHAT_TO_THE_END,
    CHAT_TO_THE_END.named("chat to the end, specials shown").but(skip_special_tokens=False),
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
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CAPITAL = completion("capital", "The capital of France is", logprobs=2, max_tokens=12, return_token_ids=True)
ONLY_AN_ENGINE_SHOWS = (
    CAPITAL.named("penalised").but(frequency_penalty=1.5, presence_penalty=1, repetition_penalty=1.3, max_tokens=24),
    CAPITAL.named("biased").but(logit_bias={"330": 100, "389": 99.5}),
    CAPITAL.named("allowed ids").but(allowed_token_ids=A_OR_B),
    CAPITAL.named("bad words").but(bad_words=["Paris", " the", "France"], max_tokens=24),
    CAPITAL.named("at least").but(prompt="Bye.<|im_end|>", min_tokens=6),
    CAPITAL.named("likely enough").but(temperature=1.5, min_p=0.3, seed=5),
    CAPITAL.named("from the top").but(temperature=1.5, top_k=3, seed=5),
    CAPITAL.named("the nucleus").but(temperature=1.5, top_p=0.5, seed=5),
    # one token each: further ones are scored by which others the engine happens to compute beside them
    CAPITAL.named("two choices").but(n=2, temperature=1.5, seed=3, max_tokens=1),
    CAPITAL.named("ends where it repeats itself").but(
        prompt="one one one one one one one",
        max_tokens=48,
        repetition_detection={"max_pattern_size": 2, "min_count": 4},
    ),
    CAPITAL.named("cut to its end").but(prompt=RHYME, truncate_prompt_tokens=6),
    CAPITAL.named("cut to its start").but(prompt=RHYME, truncate_prompt_tokens=6, truncation_side="right"),
    CAPITAL.named("stop string included").but(stop=["Paris"], include_stop_str_in_output=True),
    CAPITAL.named("by a regex").but(structured_outputs={"regex": "[0-9]{3}-[0-9]{2}"}),
    CAPITAL.named("one of").but(structured_outputs={"choice": ["Paris", "Berlin"]}),
    CAPITAL.named("by a grammar").but(structured_outputs={"grammar": 'root ::= "in " ("France" | "Spain")'}),
    CAPITAL.named("an object").but(response_format={"type": "json_object"}, max_tokens=24),
    chat(
        "chat by a schema",
        "Name a cat.",
        response_format={"type": "json_schema", "json_schema": {"name": "cat", "schema": SCHEMA}},
        max_tokens=24,
        return_token_ids=True,
    ),
    chat("chat, penalised", "Say hello.", frequency_penalty=1.5, max_tokens=24, logprobs=True, return_token_ids=True),
)
"""Fields without an effect on an engine that does not sample."""
QUESTIONS = COMPLETIONS + ECHOES + SEVERAL_PROMPTS + PROMPT_LOGPROBS + CHOSEN_IDS + CHATS + ONLY_AN_ENGINE_SHOWS
