"""Exactness is paid for once per vocabulary entry, not per token."""

import json
import random
from collections import Counter
from typing import Any, cast

import pytest
from tokenizers import Tokenizer

from adapters.outbound.hf_tokenizer.fast_encoding import fast_encoding
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step
from domain.generation import TokenDelta
from domain.logprobs import LogprobColumns
from tests.exactness.client import exchange
from tests.fakes import tokenizers as fakes
from tests.fakes.counting_library import CountingLibrary
from tests.http.serving import COMPLETIONS, application

TOKENS = 10_000
WIDTH = 6
"""Entries of a row: the token and five alternatives."""


@pytest.fixture(params=["byte_level_bpe", "llama_bpe", "gemma_bpe", "word_piece"])
def library(request: pytest.FixtureRequest) -> CountingLibrary:
    return CountingLibrary(getattr(fakes, request.param)())


def ascii_steps(library: CountingLibrary, seed: int) -> list[Step]:
    """One token a step, each ASCII; its alternatives are any that there are."""
    choose = random.Random(seed)
    pieces = HfTokenizer(cast("Tokenizer", library))
    ids = range(pieces.vocab_size)
    ascii_ids = [token_id for token_id in ids if pieces.piece(token_id).content.isascii()]
    rows = [[choose.choice(ascii_ids), *choose.choices(ids, k=WIDTH - 1)] for _ in range(TOKENS)]
    return [TokenDelta(row[:1], LogprobColumns(WIDTH, row, [-0.5] * WIDTH, [1])) for row in rows]


@pytest.mark.parametrize("stream", [False, True])
async def test_ten_thousand_ascii_tokens_cost_no_decode(library: CountingLibrary, stream: bool) -> None:
    steps = [ascii_steps(library, seed) for seed in (1, 2)]
    engine = ScriptedEngine(*steps, max_model_len=2 * TOKENS)
    app = application(engine, tokenizer=HfTokenizer(cast("Tokenizer", library)))
    body: dict[str, Any] = {"prompt": "Hello", "max_tokens": TOKENS, "logprobs": WIDTH - 1, "stream": stream}
    entries = library.get_vocab_size()
    calls = []
    for _ in steps:
        library.calls.clear()
        status, content = await exchange(app, COMPLETIONS, json.dumps(body).encode())
        assert (status, content.count(b'"top_logprobs"')) == (200, TOKENS if stream else 1)
        calls.append(Counter(library.calls))

    first, again = calls
    assert first["decode"] == 0
    assert first["id_to_token"] <= entries
    assert first["decoder.decode"] <= 2 * entries
    is_fast = fast_encoding(cast("Tokenizer", library)) is not None
    assert again == ({} if is_fast else {"encode_batch_fast": 1})
