"""The rule is resolved by the service, from the request's own value and the injected options (contract 1.1, 1.2)."""

from collections.abc import Callable

import pytest

from adapters.outbound.mock_engine.scripted import steps
from application.requests import TextOutput
from tests.application.serving import Asked, chat, completion, read, serve

MATRIX = {
    (True, None): True,
    (True, False): False,
    (True, True): True,
    (False, None): False,
    (False, False): False,
    (False, True): True,
}


@pytest.mark.parametrize("ask", [chat, completion])
@pytest.mark.parametrize(("flag", "field"), MATRIX)
async def test_the_running_generation_knows_what_to_show(
    flag: bool, field: bool | None, ask: Callable[..., Asked]
) -> None:
    served = serve(steps(104), flag=flag)

    generation = await served(ask(return_tokens_as_token_ids=field))

    assert generation.show_token_ids is MATRIX[flag, field]
    await read(generation)


@pytest.mark.parametrize("ask", [chat, completion])
@pytest.mark.parametrize("flag", [True, False])
async def test_a_request_that_does_not_say_takes_the_servers_default(flag: bool, ask: Callable[..., Asked]) -> None:
    generation = await serve(steps(104), flag=flag)(ask())

    assert generation.show_token_ids is flag
    await read(generation)


def test_a_request_keeps_apart_what_it_does_not_say_and_false() -> None:
    assert TextOutput().return_tokens_as_token_ids is None
    assert TextOutput(return_tokens_as_token_ids=False).return_tokens_as_token_ids is False


@pytest.mark.parametrize("flag", [True, False])
async def test_each_request_is_resolved_by_itself(flag: bool) -> None:
    served = serve(steps(104), flag=flag)

    shown = []
    for field in (True, None, False, None):
        generation = await served(completion(return_tokens_as_token_ids=field))
        shown.append(generation.show_token_ids)
        await read(generation)

    assert shown == [True, flag, False, flag]
