"""Whatever a client sends, it gets an answer or is told what is wrong; never a failure of the server."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from litestar import Litestar

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from tests.http.answers import answers, error_of
from tests.http.serving import CHAT, COMPLETIONS, ENDPOINTS, application, post, with_logprobs
from tests.http.test_fields import BUILT, UNBUILT
from tests.http.vocabulary import EOS, PARTY, HardTokenizer

NAMES = {path: sorted(BUILT[path].keys() | UNBUILT[path].keys() | {"prompt", "messages"}) for path in ENDPOINTS}

ASKED: dict[str, dict[str, Any]] = {
    CHAT: {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "é"}]}]
    },
    COMPLETIONS: {"prompt": [0xC3, 104, 105], "echo": True},
}
FULL: dict[str, dict[str, Any]] = {
    path: {
        "model": "m",
        "temperature": 0.5,
        "stop": ["x", "yz"],
        "stop_token_ids": [5],
        "max_tokens": 4,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_token_ids": True,
        "return_tokens_as_token_ids": None,
        "request_id": "r",
        **with_logprobs(path, 2),
        **ASKED[path],
    }
    for path in ENDPOINTS
}

NUMBERS = st.sampled_from(
    [0, 1, -1, 2, 16, 17, 8192, 8193, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308]
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, st.integers(), st.floats(allow_nan=False), st.text(max_size=5))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, bytes]:
    """An endpoint, and a request to it that a few mistakes were made in: of values, then of bytes."""
    path = draw(st.sampled_from(ENDPOINTS))
    body: Any = json.loads(json.dumps(FULL[path]))
    for _ in range(draw(st.integers(0, 3))):
        place, key = body, draw(st.sampled_from(NAMES[path]))
        while isinstance(place.get(key), dict) and place[key] and draw(st.booleans()):
            place, key = place[key], draw(st.sampled_from(sorted(place[key])))
        if draw(st.booleans()) and key in place:
            del place[key]
        elif isinstance(place.get(key), list) and place[key] and draw(st.booleans()):
            place[key][draw(st.integers(0, len(place[key]) - 1))] = draw(VALUES)
        else:
            place[key] = draw(VALUES)
    content = json.dumps(body, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    if draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.binary(max_size=3)) + content[at + draw(st.integers(0, 3)) :]
    return path, content


@pytest.fixture(scope="module")
def app() -> Litestar:
    return application(
        ScriptedEngine(steps(104, PARTY, 0xF0, EOS, alternatives=[104, 0x9F], tokens_per_step=2)),
        tokenizer=HardTokenizer(),
        body_limit=4000,
    )


@given(sent=bodies())
@settings(max_examples=300)
async def test_answered_or_told(app: Litestar, sent: tuple[str, bytes]) -> None:
    response = await post(app, *sent)

    if response.status_code == 200:
        assert all(shown.finish_reason in ("length", "stop") for shown in answers(response))
    elif response.status_code == 404:
        assert error_of(response, 404, "NotFoundError")["param"] == "model"
    else:
        error = error_of(response, 400)
        assert error["param"] is None or error["param"] in NAMES[sent[0]]
