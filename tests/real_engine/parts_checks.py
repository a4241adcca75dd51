"""An answer in parts, each from a route of its own, is the answer of the one route."""

from collections.abc import Iterable

import pytest

from tests.real_engine.answers import Asker, Json, assembled, each_choice
from tests.real_engine.questions import (
    CHAT_PETS,
    CHAT_PETS_BY_FIVE,
    ECHOED_HELLO,
    PAST_THE_END,
    PETS_AND_FOX,
    Question,
    chat,
    completion,
)

GENERATE = "/inference/v1/generate"
QUESTIONS = [
    ECHOED_HELLO,
    CHAT_PETS,
    CHAT_PETS_BY_FIVE,
    PAST_THE_END,
    # what the engine happens to compute beside a token moves its score: so one token each, or none scored
    completion("two choices", "1, 2, 3,", n=2, temperature=1.5, seed=3, max_tokens=1, logprobs=1),
    completion("two prompts", ["1, 2, 3,", "a, b, c,"], max_tokens=4),
    completion("stopped", "1, 2, 3, 4,", stop=["7"], max_tokens=24, logprobs=0, return_token_ids=True),
    chat("scored", PETS_AND_FOX, prompt_logprobs=1, logprobs=True, max_tokens=4, return_token_ids=True),
]
DISPLAYS = (None, True, False)


class ServesInParts:
    """The checks of one server, whose module has the fixture `asker`."""

    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
    def test_in_one_piece(self, asker: Asker, question: Question) -> None:
        for display in DISPLAYS:
            asked = question.but(return_tokens_as_token_ids=display)
            assert _plain(_in_parts(asker, asked)) == _plain(asker.ask(asked))

    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
    def test_in_chunks(self, asker: Asker, question: Question) -> None:
        if not question.is_streamable:
            question = question.but(prompt_logprobs=None)
        for display in DISPLAYS:
            asked = question.but(return_tokens_as_token_ids=display, stream_options={"include_usage": True})
            told = assembled(list(_in_chunks(asker, asked.but(stream=True))))
            expected = assembled(asker.ask_streamed(asked))
            assert each_choice(told) == each_choice(expected)


def _plain(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in ("id", "created")}


def _rendered(asker: Asker, question: Question) -> list[Json]:
    made = asker.tell(f"{question.path}/render", dict(question.body))
    return [made] if question.is_chat else list(made)


def _in_parts(asker: Asker, question: Question) -> Json:
    prompts = _rendered(asker, question)
    generated = [asker.tell(GENERATE, prompt) for prompt in prompts]
    ids = [prompt["token_ids"] for prompt in prompts]
    if question.is_chat:
        told = {"generate_response": generated[0], "prompt_token_ids": ids[0], "chat_request": question.body}
    else:
        told = {"generate_responses": generated, "prompt_token_ids": ids, "completion_request": question.body}
    answer: Json = asker.tell(f"{question.path}/derender", told)
    return answer


def _in_chunks(asker: Asker, question: Question) -> Iterable[Json]:
    """As a stream of the one route has them: a usage at its end."""
    request = {"chat_request" if question.is_chat else "completion_request": question.body}
    counts = {"prompt_tokens": 0, "total_tokens": 0, "completion_tokens": 0}
    for place, prompt in enumerate(_rendered(asker, question)):
        states: dict[int, Json] = {}
        for chunk in asker.events(GENERATE, prompt):
            told = {"stream": True, "generate_chunk": chunk, "prompt_token_ids": prompt["token_ids"]} | request
            index = chunk["choices"][0]["index"] if chunk["choices"] else None
            told["stream_state"] = None if index is None else states.get(index)
            made = asker.tell(f"{question.path}/derender", told)
            if index is None:
                counts = {name: counts[name] + made["chunk"]["usage"][name] for name in counts}
                continue
            states[index] = made["stream_state"]
            for choice in made["chunk"]["choices"]:
                choice["index"] += place * (question.body.get("n") or 1)
                if question.is_chat and choice["delta"]["role"] is None:
                    del choice["delta"]["role"]
            yield made["chunk"]
    yield {"choices": [], "usage": counts}
