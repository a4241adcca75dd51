"""The rule: a request's own value, else the server's default (contract 1.1 and 1.4)."""

import pytest

from domain.logprobs import placeholder
from domain.precedence import shows_token_ids

MATRIX = [
    # server flag, request field, shown
    (True, None, "token_id:104"),
    (True, False, "h"),
    (True, True, "token_id:104"),
    (False, None, "h"),
    (False, False, "h"),
    (False, True, "token_id:104"),
]


@pytest.mark.parametrize(("server_default", "requested", "shown"), MATRIX)
def test_a_requests_own_value_wins_and_else_the_servers(
    server_default: bool, requested: bool | None, shown: str
) -> None:
    as_ids = shows_token_ids(requested, server_default)

    assert as_ids is (shown == "token_id:104")
    assert (placeholder(104) if as_ids else "h") == shown


@pytest.mark.parametrize(("token_id", "shown"), [(0, "token_id:0"), (151_643, "token_id:151643")])
def test_a_placeholder_is_the_id_in_decimal(token_id: int, shown: str) -> None:
    assert placeholder(token_id) == shown
