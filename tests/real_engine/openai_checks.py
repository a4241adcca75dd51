"""What OpenAI's own client must get, with vLLM's fields given as its `extra_body`."""

from typing import Literal

import openai
import pytest
from pydantic import BaseModel

from tests.real_engine.openai_calls import PLAIN, PLAIN_CHAT
from tests.real_engine.questions import HELLO, PETS
from tests.real_engine.servers import MODEL
from tests.real_engine.vocabulary import Vocabulary, token_id

IDS = {"return_tokens_as_token_ids": True}
COUNTRY_CHAT = PLAIN_CHAT.but(max_tokens=48)


class Country(BaseModel):
    name: Literal["France", "Japan"]
    capital: Literal["Paris", "Tokyo"]


class ServesOpenAIClient:
    """The checks of one server, whose module has the fixture `server`."""

    def test_openai_completion(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        completion = client.completions.create(
            model=MODEL, prompt=HELLO, echo=True, logprobs=1, max_tokens=10, temperature=0, extra_body=IDS
        )

        (choice,) = completion.choices
        assert choice.logprobs
        assert choice.logprobs.tokens
        assert choice.logprobs.top_logprobs
        assert choice.logprobs.text_offset
        assert vocabulary.decode([token_id(token) for token in choice.logprobs.tokens]) == choice.text
        assert [next(iter(top)) for top in choice.logprobs.top_logprobs[1:]] == choice.logprobs.tokens[1:]
        assert choice.logprobs.text_offset[:3] == [0, len("Say"), len("Say '")]

    def test_openai_completion_streamed(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        text, tokens = "", []
        with client.completions.create(
            model=MODEL, prompt=HELLO, echo=True, logprobs=1, max_tokens=10, temperature=0, stream=True, extra_body=IDS
        ) as chunks:
            for chunk in chunks:
                (choice,) = chunk.choices
                assert choice.logprobs
                text += choice.text
                tokens += choice.logprobs.tokens or ()

        assert text.startswith(HELLO)
        assert vocabulary.decode([token_id(token) for token in tokens]) == text

    def test_openai_chat(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        answer = client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": PETS}],
            logprobs=True,
            top_logprobs=2,
            max_tokens=8,
            temperature=0,
            extra_body=IDS,
        )

        (choice,) = answer.choices
        assert choice.logprobs
        assert choice.logprobs.content
        assert vocabulary.decode([token_id(row.token) for row in choice.logprobs.content]) == choice.message.content
        assert [row.top_logprobs[0].token for row in choice.logprobs.content] == [
            row.token for row in choice.logprobs.content
        ]
        assert b"".join(bytes(row.bytes or ()) for row in choice.logprobs.content).decode(errors="replace") == (
            choice.message.content
        )

    def test_openai_chat_streamed(self, client: openai.OpenAI, vocabulary: Vocabulary) -> None:
        text, ids = "", []
        with client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": PETS}],
            logprobs=True,
            max_tokens=8,
            temperature=0,
            stream=True,
            extra_body=IDS,
        ) as chunks:
            for chunk in chunks:
                (choice,) = chunk.choices
                text += choice.delta.content or ""
                ids += [token_id(row.token) for row in (choice.logprobs and choice.logprobs.content) or ()]

        assert len(ids) == 8
        assert vocabulary.decode(ids) == text

    def test_openai_models(self, client: openai.OpenAI) -> None:
        assert [model.id for model in client.models.list()] == [MODEL]

    def test_openai_chat_parsed(self, client: openai.OpenAI) -> None:
        answer = client.chat.completions.parse(**COUNTRY_CHAT.fields, response_format=Country)

        assert isinstance(answer.choices[0].message.parsed, Country)

    def test_openai_chat_too_short_to_parse(self, client: openai.OpenAI) -> None:
        with pytest.raises(openai.LengthFinishReasonError) as raised:
            client.chat.completions.parse(**PLAIN_CHAT.but(max_tokens=3).fields, response_format=Country)

        assert raised.value.completion.usage
        assert raised.value.completion.usage.completion_tokens == 3

    def test_openai_chat_streamed_with_events(self, client: openai.OpenAI) -> None:
        text, rows = "", []
        with client.chat.completions.stream(
            **COUNTRY_CHAT.fields, response_format=Country, logprobs=True, stream_options={"include_usage": True}
        ) as events:
            for event in events:
                if event.type == "content.delta":
                    text += event.delta
                elif event.type == "logprobs.content.delta":
                    rows += event.content

            answer = events.get_final_completion()

        (choice,) = answer.choices
        assert choice.message.content == text
        assert choice.message.parsed == Country.model_validate_json(text)
        assert choice.logprobs
        assert choice.logprobs.content == rows
        assert answer.usage
        assert answer.usage.completion_tokens == len(rows)

    def test_openai_completion_as_it_is_sent(self, client: openai.OpenAI) -> None:
        with client.completions.with_streaming_response.create(**PLAIN.fields, stream=True) as response:
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            *frames, done = [line for line in response.iter_lines() if line]

        assert done == "data: [DONE]"
        assert len(frames) > 1
