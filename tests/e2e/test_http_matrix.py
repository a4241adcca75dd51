"""The rule over real sockets: every cell of the matrix, on two servers, one with the flag and one without."""

import pytest

from tests.e2e.serving import client_at, listening
from tests.http.answers import answer
from tests.http.matrix import CASES, ENDPOINTS, Endpoint, engine
from tests.http.serving import application


@pytest.mark.parametrize("flag", [True, False], ids=["on", "off"])
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_token_strings_at_every_level(flag: bool, endpoint: Endpoint) -> None:
    cases = [case for case in CASES if case.flag is flag and case.endpoint is endpoint]
    assert len(cases) == 8
    async with listening(application(engine(), flag=flag)) as address, client_at(address) as client:
        for case in cases:
            case.check(answer(await client.post(endpoint.path, json=case.body)))
