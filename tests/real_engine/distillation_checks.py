"""What must come to those who learn from a model's answers, and know tokens by their ids alone."""

from math import exp
from typing import Any

import openai
import pytest

from tests.real_engine.questions import PETS, PETS_AND_FOX
from tests.real_engine.servers import MODEL
from tests.real_engine.vocabulary import Vocabulary, token_id

ROLLOUTS: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": f"Repeat: {PETS}"}],
    "n": 2,
    "temperature": 1.0,
    "seed": 11,
    "max_tokens": 16,
    "logprobs": True,
    "top_logprobs": 5,
    "extra_body": {"return_tokens_as_token_ids": True, "return_token_ids": True},
}
ONE_BY_ONE_OR_AT_ONCE = 0.15
"""By how much the engine's scores of a token may differ: generated in half precision, or read as part of a prompt."""


class ServesDistillation:
    """The checks of one server, whose module has the fixture `client`."""

    def test_a_rollout_is_rebuilt_from_its_ids(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        answer = client.chat.completions.create(**ROLLOUTS)

        first, second = (choice.message.content for choice in answer.choices)
        assert first != second
        for choice in answer.choices:
            assert choice.logprobs
            assert choice.logprobs.content
            ids = [token_id(row.token) for row in choice.logprobs.content]
            assert ids == (choice.model_extra or {})["token_ids"]
            assert vocabulary.decode(ids) == choice.message.content
            assert [bytes(row.bytes or ()) for row in choice.logprobs.content] == list(map(vocabulary.bytes_of, ids))

    def test_a_teachers_distribution_is_read_by_id(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        answer = client.chat.completions.create(**ROLLOUTS)

        for row in (row for choice in answer.choices for row in (choice.logprobs and choice.logprobs.content) or ()):
            distribution = {token_id(top.token): top.logprob for top in row.top_logprobs}
            assert len(distribution) == len(row.top_logprobs) in (5, 6)
            assert distribution[token_id(row.token)] == row.logprob
            assert sum(map(exp, distribution.values())) <= 1 + 1e-3
            assert all(vocabulary.bytes_of(token_id(top.token)) == bytes(top.bytes or ()) for top in row.top_logprobs)

    def test_a_streamed_rollout_is_the_whole_one(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        rollout = {**ROLLOUTS, "n": 1}
        (whole,) = client.chat.completions.create(**rollout).choices
        text, ids = "", []
        with client.chat.completions.create(**rollout, stream=True) as chunks:
            for chunk in chunks:
                (choice,) = chunk.choices
                text += choice.delta.content or ""
                ids += [token_id(row.token) for row in (choice.logprobs and choice.logprobs.content) or ()]

        assert whole.logprobs
        assert ids == [token_id(row.token) for row in whole.logprobs.content or ()]
        assert text == whole.message.content == vocabulary.decode(ids)

    def test_an_answer_is_scored_as_it_was_generated(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        prompt = vocabulary.encode(PETS_AND_FOX)
        fields: dict[str, Any] = {"model": MODEL, "logprobs": 0, "extra_body": {"return_tokens_as_token_ids": True}}
        (generated,) = client.completions.create(**fields, prompt=prompt, max_tokens=12, temperature=1, seed=4).choices
        assert generated.logprobs
        ids = [token_id(token) for token in generated.logprobs.tokens or ()]

        (scored,) = client.completions.create(**fields, prompt=prompt + ids, max_tokens=0, echo=True).choices

        assert scored.logprobs
        assert [token_id(token) for token in scored.logprobs.tokens or ()] == prompt + ids
        assert scored.text == vocabulary.decode(prompt + ids)
        again = (scored.logprobs.token_logprobs or ())[len(prompt) :]
        assert again == pytest.approx(generated.logprobs.token_logprobs, abs=ONE_BY_ONE_OR_AT_ONCE)
