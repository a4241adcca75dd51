"""The model that `northbound serve` has of its own, loaded once for all tests that want it."""

import atexit
import os
from functools import cache
from importlib.util import find_spec

import pytest

from adapters.outbound.llamacpp_engine.default_model import cache_folder, default_model
from adapters.outbound.llamacpp_engine.model import GgufModel

HAS_LLAMA_CPP = find_spec("inferna") is not None

needs_llama_cpp = pytest.mark.skipif(not HAS_LLAMA_CPP, reason="northbound[local] needs Python 3.12 or newer")


@cache
def weights() -> GgufModel:
    """Fetched if it is not there yet."""
    model = GgufModel(str(default_model(cache_folder(os.environ), is_quiet=True)))
    atexit.register(model.close)
    return model
