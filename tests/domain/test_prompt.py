"""Which prompts can be served, and how much may follow one."""

import pytest

from domain.prompt import OutOfVocabulary, Prompt, PromptNotServable, PromptTooLong, TooManyTokens

VOCABULARY = 300
CONTEXT = 10


def check(prompt: Prompt) -> None:
    prompt.check(VOCABULARY, CONTEXT, "prompt")


@pytest.mark.parametrize("token_ids", [[0], [299], list(range(9))])
def test_a_prompt_that_leaves_room_passes(token_ids: list[int]) -> None:
    check(Prompt(token_ids))


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(PromptNotServable) as refused:
        check(Prompt([], ""))

    assert refused.value.param == "prompt"


@pytest.mark.parametrize(("token_ids", "named"), [([1, 300, 2], "300"), ([1, -1, 2], "-1")])
def test_a_token_that_the_model_lacks_is_refused_by_its_id(token_ids: list[int], named: str) -> None:
    with pytest.raises(OutOfVocabulary, match=named) as refused:
        check(Prompt(token_ids))

    assert refused.value.param == "prompt"


@pytest.mark.parametrize("length", [10, 11])
def test_a_prompt_that_fills_the_context_is_refused_with_both_lengths(length: int) -> None:
    with pytest.raises(PromptTooLong) as refused:
        Prompt([1] * length, "text").check(VOCABULARY, CONTEXT, "messages")

    assert refused.value.param == "messages"
    assert str(CONTEXT) in str(refused.value)
    assert str(length) in str(refused.value)


@pytest.mark.parametrize(
    ("requested", "allowed"),
    [(None, 7), (1, 1), (7, 7), (8, 7), (10, 7)],
)
def test_as_many_tokens_follow_as_were_asked_for_and_fit(requested: int | None, allowed: int) -> None:
    assert Prompt([1, 2, 3]).max_tokens(requested, CONTEXT, "max_tokens") == allowed


def test_more_than_could_ever_fit_is_refused_by_the_callers_name_for_it() -> None:
    with pytest.raises(TooManyTokens, match="11") as refused:
        Prompt([1, 2, 3]).max_tokens(11, CONTEXT, "max_completion_tokens")

    assert refused.value.param == "max_completion_tokens"
    assert str(CONTEXT) in str(refused.value)


@pytest.mark.parametrize(
    ("tokens", "keeps_end", "left"),
    [(3, True, [1, 2, 3]), (2, True, [2, 3]), (2, False, [1, 2]), (0, True, []), (0, False, [])],
)
def test_what_is_left_of_a_prompt_that_is_cut(tokens: int, keeps_end: bool, left: list[int]) -> None:
    assert Prompt([1, 2, 3]).truncated(tokens, keeps_end).token_ids == left
