"""What a model's files say of it: the size of its vocabulary, what ends an answer, how tokens are chosen by default."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from adapters.outbound.hf_tokenizer.model_files import ModelFiles, ModelNotLoadable, one_line
from application.model import ModelDefaults
from domain.errors import RequestError
from domain.sampling import SamplingParams

CONFIG: Final = "config.json"
GENERATION_CONFIG: Final = "generation_config.json"

LANGUAGE_MODELS: Final = ("text_config", "llm_config", "language_config", "decoder", "generator")
"""Where the config of a model of several parts keeps that of the part that writes text."""

FROM_MODEL: Final = "auto"
NEUTRAL: Final = "vllm"


NO_OVERRIDE: Final[Mapping[str, Any]] = {}


class ModelFacts(Struct, frozen=True, kw_only=True):
    """What is known of a model without its weights."""

    defaults: ModelDefaults
    vocab_size: int
    """Every id that the model can score or the tokenizer can give: the larger of the two vocabularies."""
    max_output_tokens: int | None
    """No answer is to be longer: what a folder of defaults, or an override of them, says of new tokens."""
    context_length: int | None
    """Tokens the model was made for, if it says so; what counts is what the engine allows."""


TokenId = Annotated[int, Meta(ge=-(2**31), lt=2**31)]
"""What an engine can be told, whether it has such a token or not."""


class GenerationConfig(Struct, frozen=True):
    """The part of `generation_config.json` that is used. None is what the file does not say."""

    eos_token_id: TokenId | list[TokenId] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    max_new_tokens: int | None = None

    @property
    def eos_token_ids(self) -> list[int]:
        ids = self.eos_token_id
        return [ids] if isinstance(ids, int) else ids or []

    @property
    def sampling(self) -> dict[str, Any]:
        """Its sampling parameters, by the names that SamplingParams has for them."""
        values = msgspec.structs.asdict(self)
        del values["eos_token_id"]
        values["max_tokens"] = values.pop("max_new_tokens")
        return {name: value for name, value in values.items() if value is not None}


_EXPECTED: Final = {float | None: "a number", int | None: "an integer"}


def load_model_facts(
    name: str,
    *,
    revision: str | None = None,
    generation_config: str = FROM_MODEL,
    override: Mapping[str, Any] = NO_OVERRIDE,
    eos_token_id: int | None,
    tokenizer_vocab_size: int,
) -> ModelFacts:
    """`name` is a folder or a name on the hub; `eos_token_id` is the tokenizer's.

    `generation_config` says whose sampling defaults to use: the model's own (`auto`), none (`vllm`), or those in some
    other folder; `override` wins over them. Raises ModelNotLoadable."""
    files = ModelFiles(name, revision)
    config = files.read_json(CONFIG)
    if config is None:
        raise ModelNotLoadable(f"{name} has no {CONFIG}.")
    try:
        generation = _generation_config(generation_config, files, config)
    except ModelNotLoadable as error:
        if generation_config in (FROM_MODEL, NEUTRAL):
            raise
        raise ModelNotLoadable(f"--generation-config: {error}") from error
    # Same as vLLM: with `vllm` the model's file still says which tokens end an answer.
    sampling = _overridden({} if generation_config == NEUTRAL else generation.sampling, override)
    # Same as vLLM: what the model itself says of new tokens is a default, what the operator says a limit.
    limits_output = generation_config not in (FROM_MODEL, NEUTRAL) or "max_new_tokens" in override
    others = [token_id for token_id in dict.fromkeys(generation.eos_token_ids) if token_id != eos_token_id]
    language_model = config | _language_model(config)
    return ModelFacts(
        defaults=ModelDefaults(eos_token_id=eos_token_id, stop_token_ids=others, **sampling),
        vocab_size=max(_count(language_model, "vocab_size") or 0, tokenizer_vocab_size),
        max_output_tokens=sampling.get("max_tokens") if limits_output else None,
        context_length=_count(language_model, "max_position_embeddings"),
    )


def _generation_config(source: str, files: ModelFiles, config: dict[str, Any]) -> GenerationConfig:
    own = source in (FROM_MODEL, NEUTRAL)
    where = f"{files.name if own else source}/{GENERATION_CONFIG}"
    content = (files if own else ModelFiles(source)).read_json(GENERATION_CONFIG)
    if content is None:
        if not own:
            raise ModelNotLoadable(f"{source} has no {GENERATION_CONFIG}.")
        # Same as vLLM: a model without the file may say it in its config.
        where = f"{files.name}/{CONFIG}"
        content = _language_model(config) | {key: value for key, value in config.items() if value is not None}
    return _read(content, where, with_sampling=source != NEUTRAL)


def _overridden(sampling: dict[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Same as vLLM: a null takes away what the model says."""
    names = {"max_tokens" if name == "max_new_tokens" else name for name in override}
    kept = {name: value for name, value in sampling.items() if name not in names}
    return kept | _read(override, "--override-generation-config").sampling


def _read(content: Mapping[str, Any], where: str, *, with_sampling: bool = True) -> GenerationConfig:
    try:
        generation = msgspec.convert(content, GenerationConfig)
        if with_sampling:
            SamplingParams(**generation.sampling)
    except msgspec.ValidationError as error:
        raise ModelNotLoadable(f"{where} is not usable: {_first_of_another_type(content)}") from error
    except RequestError as error:
        raise ModelNotLoadable(f"{where} is not usable: {one_line(error)}") from error
    return generation


def _first_of_another_type(content: Mapping[str, Any]) -> str:
    """What is wrong with the first entry that a GenerationConfig cannot have."""
    for field in msgspec.structs.fields(GenerationConfig):
        value = content.get(field.name)
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError:
            expected = _EXPECTED.get(field.type, "a token id, or a list of them")
            return f"{field.name} must be {expected}, got {json.dumps(value)}."
    raise AssertionError(f"each entry of {content} by itself is usable")


def _language_model(config: dict[str, Any]) -> dict[str, Any]:
    """What a model of several parts says of the one that writes text; nothing where there is but one."""
    for key in LANGUAGE_MODELS:
        part = config.get(key)
        if isinstance(part, dict) and part:
            return part | _language_model(part)
    return {}


def _count(config: dict[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) else None
