"""What random requests are sent to: the whole application over engines that generate by themselves."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from litestar import Litestar

from adapters.bootstrap.app import build_app
from adapters.inbound.cli.settings import HttpSettings
from adapters.outbound.byte_tokenizer.tokenizer import VOCAB_SIZE
from adapters.outbound.hf_tokenizer.loading import load_tokenizer
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.jinja_chat.renderer import JinjaChat
from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.mock_engine.engine import MockEngine
from application.model import ModelDefaults
from tests.contract.engines import emulated
from tests.fakes.tokenizers import write_model_folder
from tests.fuzz.requests import BODY_LIMIT
from tests.http.serving import application, container

SETTINGS = HttpSettings(enable_scale_out=True)
"""With all routes there are."""

MAX_MODEL_LEN = 64
"""So few that the longest answer takes no time."""

Kind = Literal["mock", "model", "emulated"]
KINDS: tuple[Kind, ...] = ("mock", "model", "emulated")
"""The mock engine; the same behind a model's tokenizer and chat template, with requests trusted to bring their own; the
client of vLLM's engine with an emulated one."""


class Server(NamedTuple):
    app: Litestar
    running: Callable[[], int]
    """Requests that the engine has not ended."""


@asynccontextmanager
async def serving(kind: Kind) -> AsyncIterator[Server]:
    if kind == "emulated":
        async with emulated(1, 0.0, MAX_MODEL_LEN) as under_test:
            yield Server(application(under_test.engine, body_limit=BODY_LIMIT), lambda: under_test.running)
        return
    model = _model() if kind == "model" else {"vocab_size": VOCAB_SIZE}
    # any token may come, so that texts break inside a character
    generations = DeterministicModel(model["vocab_size"], max_model_len=MAX_MODEL_LEN)
    engine = MockEngine(generations.start, tokens_per_step=2, max_model_len=MAX_MODEL_LEN)
    app = build_app(container(engine, body_limit=BODY_LIMIT, **model), SETTINGS, updates_lora=True)
    yield Server(app, lambda: engine.running)
    await engine.aclose()


def _model() -> dict[str, Any]:
    """What of an application a model makes."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = load_tokenizer(str(write_model_folder(Path(folder))))
    tokenizer = HfTokenizer(loaded.backend_tokenizer)
    return {
        "tokenizer": tokenizer,
        "vocab_size": tokenizer.vocab_size,
        "chat_renderer": JinjaChat(loaded),
        "defaults": ModelDefaults(eos_token_id=loaded.eos_token_id, trust_request_chat_template=True),
    }
