from collections.abc import AsyncIterator

import pytest

from adapters.outbound.llamacpp_engine.engine import LlamaCppEngine, open_llamacpp
from adapters.outbound.llamacpp_engine.model import GgufModel
from adapters.outbound.llamacpp_engine.tokenizer import GgufTokenizer
from tests.fakes.gguf import HAS_LLAMA_CPP, weights


@pytest.fixture(scope="session")
def model() -> GgufModel:
    if not HAS_LLAMA_CPP:
        pytest.skip("northbound[local] needs Python 3.12 or newer")
    return weights()


@pytest.fixture(scope="session")
def tokenizer(model: GgufModel) -> GgufTokenizer:
    return GgufTokenizer(model)


@pytest.fixture
async def engine(model: GgufModel) -> AsyncIterator[LlamaCppEngine]:
    async with open_llamacpp(model, max_model_len=512, max_num_seqs=4) as opened:
        yield opened
