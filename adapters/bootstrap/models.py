"""Everything about a model but the engine that runs it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from adapters.inbound.cli.settings import ModelSettings
from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE, ByteTokenizer
from adapters.outbound.hf_tokenizer.loading import configuration, load_tokenizer
from adapters.outbound.hf_tokenizer.model_facts import load_model_facts
from adapters.outbound.hf_tokenizer.model_files import ModelNotLoadable
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.jinja_chat.renderer import JinjaChat, TemplateTokenizer
from adapters.outbound.jinja_chat.template import read_chat_template
from adapters.outbound.llamacpp_engine.model import GgufModel
from application.model import ModelDefaults, ModelLimits
from application.ports.chat_renderer import ChatRenderer
from application.ports.tokenizer import Tokenizer


class Model(Struct, frozen=True, kw_only=True):
    """A model as a frontend knows it: vocabulary, template, defaults and limits."""

    root: str
    names: Sequence[str]
    tokenizer: Tokenizer
    chat_renderer: ChatRenderer
    defaults: ModelDefaults
    limits: ModelLimits
    context_length: int | None = None
    """Tokens that it was made for, if it says so."""
    tokenizer_configuration: Mapping[str, Any]
    """What the tokenizer's own configuration says."""
    is_bytes: bool = False
    """Whether there is no model at all, and the vocabulary is that of bytes."""
    weights: GgufModel | None = None
    """The model itself, where it runs in this process."""


def load_model(settings: ModelSettings) -> Model:
    """Raises ModelNotLoadable or ChatTemplateNotLoadable with one line that says what is missing. Takes a second or so
    for a real model."""
    if settings.model is None:
        return Model(
            root="mock",
            names=settings.served_model_names,
            tokenizer=ByteTokenizer(),
            chat_renderer=PlainChat(),
            defaults=ModelDefaults(eos_token_id=EOS_TOKEN_ID),
            limits=ModelLimits(vocab_size=VOCAB_SIZE, max_logprobs=settings.max_logprobs),
            tokenizer_configuration={"tokenizer_class": ByteTokenizer.__name__},
            is_bytes=True,
        )
    try:
        loaded = load_tokenizer(
            settings.tokenizer or settings.model,
            revision=settings.tokenizer_revision or settings.revision,
            trust_remote_code=settings.trust_remote_code,
        )
    except ModelNotLoadable as error:
        raise (ModelNotLoadable(f"--tokenizer: {error}") if settings.tokenizer else error) from None
    tokenizer = HfTokenizer(loaded.backend_tokenizer)
    facts = load_model_facts(
        settings.model,
        revision=settings.revision,
        generation_config=settings.generation_config,
        override=settings.override_generation_config or {},
        eos_token_id=loaded.eos_token_id,
        tokenizer_vocab_size=tokenizer.vocab_size,
    )
    return Model(
        root=settings.model,
        names=settings.served_model_names,
        tokenizer=tokenizer,
        chat_renderer=chat_renderer(loaded, settings),
        tokenizer_configuration=told(configuration(loaded), settings),
        defaults=structs.replace(
            facts.defaults,
            chat_template_kwargs=settings.default_chat_template_kwargs or {},
            trust_request_chat_template=settings.trust_request_chat_template,
        ),
        context_length=facts.context_length,
        limits=ModelLimits(
            vocab_size=facts.vocab_size, max_logprobs=settings.max_logprobs, max_output_tokens=facts.max_output_tokens
        ),
    )


def told(configuration: Mapping[str, Any], settings: ModelSettings) -> Mapping[str, Any]:
    """The tokenizer's configuration, with the template that is used."""
    if settings.chat_template is None:
        return configuration
    return {**configuration, "chat_template": read_chat_template(settings.chat_template)}


def chat_renderer(loaded: TemplateTokenizer, settings: ModelSettings) -> JinjaChat:
    """Raises ChatTemplateNotLoadable."""
    template = None if settings.chat_template is None else read_chat_template(settings.chat_template)
    return JinjaChat(loaded, template, settings.chat_template_content_format)
