"""What this model and this server do not take is refused by the caller's name for it, before the engine hears of it."""

import pytest

from adapters.outbound.mock_engine.scripted import steps
from domain.errors import RequestError
from domain.logprobs import LogprobsNotAllowed
from domain.prompt import OutOfVocabulary, PromptNotServable, PromptTooLong, TooManyTokens
from domain.sampling import OutOfRange, SamplingParams
from tests.application.serving import CONTEXT, Asked, chat, completion, read, serve


@pytest.mark.parametrize(
    ("request_", "error", "param"),
    [
        (completion([]), PromptNotServable, "prompt"),
        (completion([97, 261]), OutOfVocabulary, "prompt"),
        (completion(sampling=SamplingParams(stop_token_ids=[97, 261])), OutOfVocabulary, "stop_token_ids"),
        (chat(sampling=SamplingParams(stop_token_ids=[-1])), OutOfVocabulary, "stop_token_ids"),
        (completion("a" * CONTEXT), PromptTooLong, "prompt"),
        (chat("a" * CONTEXT), PromptTooLong, "messages"),
        (completion(sampling=SamplingParams(max_tokens=CONTEXT + 1)), TooManyTokens, "max_tokens"),
        (chat(sampling=SamplingParams(max_tokens=CONTEXT + 1)), TooManyTokens, "max_tokens"),
        (
            chat(sampling=SamplingParams(max_tokens=CONTEXT + 1), max_tokens_field="max_completion_tokens"),
            TooManyTokens,
            "max_completion_tokens",
        ),
        (completion(sampling=SamplingParams(min_tokens=CONTEXT)), OutOfRange, "min_tokens"),
        (completion(sampling=SamplingParams(logprobs=6)), LogprobsNotAllowed, "logprobs"),
        (completion(sampling=SamplingParams(logprobs=-1)), LogprobsNotAllowed, "logprobs"),
        (chat(sampling=SamplingParams(logprobs=6)), LogprobsNotAllowed, "top_logprobs"),
        (chat(sampling=SamplingParams(logprobs=-2)), LogprobsNotAllowed, "top_logprobs"),
        (completion(sampling=SamplingParams(prompt_logprobs=6)), LogprobsNotAllowed, "prompt_logprobs"),
        (chat(sampling=SamplingParams(prompt_logprobs=-1)), LogprobsNotAllowed, "prompt_logprobs"),
        (
            completion(sampling=SamplingParams(logprobs=0, logprob_token_ids=[5, 261])),
            OutOfVocabulary,
            "logprob_token_ids",
        ),
        (chat(sampling=SamplingParams(logprobs=0, logprob_token_ids=[-1])), OutOfVocabulary, "logprob_token_ids"),
    ],
)
async def test_refused_by_name(request_: Asked, error: type[RequestError], param: str) -> None:
    served = serve(steps(104), max_logprobs=5)

    with pytest.raises(error) as refused:
        await served(request_)

    assert refused.value.param == param
    assert served.engine.submitted == []
    assert served.metrics.started == 0


@pytest.mark.parametrize(
    ("request_", "max_logprobs"),
    [
        (completion(sampling=SamplingParams(logprobs=5)), 5),
        (chat(sampling=SamplingParams(logprobs=0)), 0),
        (completion(sampling=SamplingParams(logprobs=-1)), -1),
        (chat(sampling=SamplingParams(logprobs=261)), -1),
    ],
)
async def test_as_many_alternatives_as_the_server_gives(request_: Asked, max_logprobs: int) -> None:
    served = serve(steps(104), max_logprobs=max_logprobs)

    await read(await served(request_))

    assert served.engine.submitted[0].sampling.logprobs == request_.sampling.logprobs


@pytest.mark.parametrize(
    ("asked", "given"),
    [(None, CONTEXT - 2), (7, 7), (CONTEXT - 2, CONTEXT - 2), (CONTEXT - 1, CONTEXT - 2), (CONTEXT, CONTEXT - 2)],
)
async def test_the_engine_is_told_how_many_tokens_fit(asked: int | None, given: int) -> None:
    served = serve(steps(104))

    await read(await served(completion("ab", SamplingParams(max_tokens=asked))))

    assert served.engine.submitted[0].sampling.max_tokens == given


@pytest.mark.parametrize(
    ("request_", "request_id", "token_ids"),
    [(completion("é", request_id="mine"), "mine-0", [0xC3, 0xA9]), (chat("a"), "r", [258, 97, 259])],
)
async def test_the_engine_gets_the_prompt_under_the_callers_id(
    request_: Asked, request_id: str, token_ids: list[int]
) -> None:
    """Same as vLLM: that of a completion says which of its prompts it is."""
    served = serve(steps(104))

    await read(await served(request_))

    assert served.engine.submitted[0].request_id == request_id
    assert list(served.engine.submitted[0].prompt_token_ids) == token_ids


async def test_token_ids_are_the_prompt_as_they_are() -> None:
    served = serve(steps(104))

    generation = await served(completion([97, 256, 240]))
    await read(generation)

    assert list(served.engine.submitted[0].prompt_token_ids) == [97, 256, 240]
    assert generation.prompt.text is None
