"""A model that llama.cpp runs in this process, as a frontend knows it."""

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from adapters.bootstrap.models import Model, chat_renderer, told
from adapters.inbound.cli.settings import DEFAULT_MODEL, ModelSettings
from adapters.outbound.hf_tokenizer.loading import quiet_without_torch
from adapters.outbound.hf_tokenizer.unread import leave_unread
from adapters.outbound.jinja_chat.bare_tokenizer import bare_tokenizer
from adapters.outbound.llamacpp_engine.default_model import cache_folder, default_model
from adapters.outbound.llamacpp_engine.library import load_library
from adapters.outbound.llamacpp_engine.model import GgufModel
from adapters.outbound.llamacpp_engine.tokenizer import GgufTokenizer
from application.model import ModelDefaults, ModelLimits

logger = logging.getLogger("northbound")


@contextmanager
def loaded_gguf(settings: ModelSettings) -> Iterator[Model]:
    """The file's model, or the default one, until the end of the block. May take minutes, to download or to load.

    Raises EngineFailure or ChatTemplateNotLoadable with one line that says what is missing."""
    load_library()  # without it, nothing need be fetched
    path = settings.model or _default_model()
    began = time.monotonic()
    with GgufModel(path) as weights:
        logger.info("loaded %s in %.1f s: %s", path, time.monotonic() - began, weights.description)
        with quiet_without_torch():
            leave_unread()
            template = bare_tokenizer(
                weights.chat_template, bos_token=weights.token_text("bos"), eos_token=weights.token_text("eos")
            )
        eos = weights.eos_token_id
        yield Model(
            root=settings.model or DEFAULT_MODEL,
            names=settings.served_model_names,
            tokenizer=GgufTokenizer(weights),
            tokenizer_configuration=told(
                {"tokenizer_class": GgufTokenizer.__name__, "chat_template": weights.chat_template}, settings
            ),
            chat_renderer=chat_renderer(template, settings),
            defaults=ModelDefaults(
                eos_token_id=eos,
                stop_token_ids=[token_id for token_id in weights.end_token_ids() if token_id != eos],
                chat_template_kwargs=settings.default_chat_template_kwargs or {},
                trust_request_chat_template=settings.trust_request_chat_template,
            ),
            limits=ModelLimits(vocab_size=weights.vocab_size, max_logprobs=settings.max_logprobs),
            weights=weights,
        )


def _default_model() -> str:
    folder = cache_folder(os.environ)
    return str(default_model(folder, is_quiet=not logger.isEnabledFor(logging.INFO)))
