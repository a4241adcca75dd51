"""`northbound serve`: what is Northbound's, what is the engine's, and which of them go together."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from adapters.inbound.cli.arguments import Arguments, engine_words
from adapters.inbound.cli.command_flags import SERVE
from adapters.inbound.cli.commands import serve_parser
from adapters.inbound.cli.config_file import with_config_file
from adapters.inbound.cli.environment import allows_lora_updating, refuse_unbuilt, stand_ins
from adapters.inbound.cli.flags import SHARED, Flag
from adapters.inbound.cli.settings import (
    DEFAULT_MODEL,
    HandshakeSettings,
    HttpSettings,
    LoraSettings,
    ModelSettings,
    ServeSettings,
)
from adapters.inbound.cli.shared import fill, handshake_settings, http_settings, lora_settings, model_settings
from adapters.inbound.cli.usage import UsageError
from adapters.inbound.cli.vllm_flags import VLLM_FLAGS, VllmFlag

_FLAGS = (*SHARED, *SERVE)
_FOR_BOTH: list[Flag | VllmFlag] = [flag for flag in _FLAGS if flag.for_engine]
_FOR_BOTH += [flag for flag in VLLM_FLAGS if flag.for_engine]
_NO_MODEL = "no MODEL: it comes first, as in `northbound serve MODEL`; to serve without one, give --engine mock"
_GGUF = ".gguf"
_NEED_A_MODEL = ("model folder", "vllm", "adapters", "engine started here")
"""Not what llama.cpp has by itself."""


def read_serve(words: Sequence[str], environ: Mapping[str, str]) -> ServeSettings:
    """Raises UsageError."""
    parser = serve_parser()
    words, untouched = _split_at_dashes(words)
    words = with_config_file(words)
    model, words = split_at_model(words)
    given, passed_on = read_known(parser, words)
    if "config" in given:
        raise UsageError("--config: there is one already")
    model, passed_on = model_and_rest(model, given, passed_on)
    _check_untouched(parser, untouched)
    refuse_unbuilt(environ)

    engine = _engine(given, model)
    values = stand_ins(_FLAGS, environ) | given
    settings = fill(
        ServeSettings,
        [flag for flag in SERVE if flag.name != "engine"],
        values,
        http=http_settings(values),
        model=model_settings(values, model, model or ("mock" if engine == "mock" else DEFAULT_MODEL)),
        handshake=handshake_settings(values),
        lora=lora_settings(values, allows_updating=allows_lora_updating(environ)),
        engine=engine,
    )
    passed_on += untouched
    _check_together(settings, given, passed_on)
    if not settings.starts_engine:
        _check_nothing_passed_on(settings, given, passed_on, parser)
        return settings
    for_both = [word for flag in _FOR_BOTH for word in engine_words(flag, given.get(flag.key))]
    return msgspec.structs.replace(settings, engine_args=(*for_both, *passed_on))


def _split_at_dashes(words: Sequence[str]) -> tuple[list[str], list[str]]:
    at = list(words).index("--") if "--" in words else len(words)
    return list(words[:at]), list(words[at + 1 :])


def split_at_model(words: list[str]) -> tuple[str | None, list[str]]:
    if words and not words[0].startswith("-"):
        return words[0], words[1:]
    return None, words


def read_known(parser: Arguments, words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    given, rest = parser.read(words)
    for flag in VLLM_FLAGS:
        if flag.key in given:
            value = given[flag.key]
            flag.check(value, f"--no-{flag.name}" if value is False else f"--{flag.name}")
    return given, rest


def model_and_rest(first: str | None, given: Mapping[str, Any], rest: list[str]) -> tuple[str | None, list[str]]:
    """MODEL, wherever it was given, and the words left. A word after a flag that is not known here is that flag's."""
    # Same as vLLM: MODEL may follow flags whose values are known, and --model stands for it.
    if first is None and rest and not rest[0].startswith("-"):
        first, rest = rest[0], rest[1:]
    if first in ("true", "false"):
        raise UsageError(f"unexpected argument {first!r}: a flag takes it behind an equals sign, as in --flag={first}")
    if rest and not rest[0].startswith("-"):
        raise UsageError(f"unexpected argument {rest[0]!r}")
    named = given.get("model")
    if first and named and first != named:
        raise UsageError(f"--model: MODEL is already {first!r}")
    return first or named or None, rest


def _check_untouched(parser: Arguments, words: Sequence[str]) -> None:
    """An engine takes the frontend's flags too, and ignores them: an API key, say, would guard nothing."""
    given, _ = read_known(parser, words)
    for flag in _FLAGS:
        if flag.key in given and not flag.for_engine:
            raise UsageError(f"--{flag.name} is not for the engine: give it before --")


def _engine(given: Mapping[str, Any], model: str | None) -> Literal["vllm", "llamacpp", "mock"]:
    match given.get("engine"):
        case "mock":
            return "mock"
        case "llamacpp":
            return "llamacpp"
        case "vllm" if model is None:
            raise UsageError(_NO_MODEL)
        case "vllm":
            return "vllm"
    return "llamacpp" if model is None or model.lower().endswith(_GGUF) else "vllm"


def _names_nothing(settings: ServeSettings, given: Mapping[str, Any]) -> bool:
    """Whether llama.cpp is to serve because nobody said what is."""
    return settings.model.model is None and given.get("engine", "auto") == "auto"


def _what_starts_none(settings: ServeSettings) -> str:
    return "--data-parallel-size-local 0" if settings.engine == "vllm" else f"--engine {settings.engine}"


def _check_nothing_passed_on(
    settings: ServeSettings, given: Mapping[str, Any], passed_on: Sequence[str], parser: Arguments
) -> None:
    """Raises UsageError for a flag that only an engine could take, or one that is misspelled."""
    if not passed_on:
        return
    name = passed_on[0].partition("=")[0]
    if not _names_nothing(settings, given):
        starts_none = f"{_what_starts_none(settings)} starts no engine to give it to"
        raise UsageError(f"{name} is not a flag of Northbound's, and {starts_none}{parser.perhaps(name)}")
    if not name.startswith("-"):
        raise UsageError(_NO_MODEL)
    hint = f"as in `northbound serve MODEL {name} ...`; --engine mock serves without one, and takes no such flag"
    raise UsageError(f"no MODEL for an engine that takes {name}: it comes first, {hint}{parser.perhaps(name)}")


def _check_together(settings: ServeSettings, given: Mapping[str, Any], passed_on: Sequence[str]) -> None:
    """Raises UsageError for a flag that what is in use cannot honour."""
    in_use = {
        "": True,
        "MODEL": settings.model.model is not None or settings.engine == "llamacpp",
        "model folder": settings.model.model is not None and settings.engine != "llamacpp",
        "mock": settings.engine == "mock",
        "vllm": settings.engine == "vllm",
        "adapters": settings.engine != "llamacpp",
        "engine started here": settings.starts_engine,
        "engine run here": settings.starts_engine or settings.engine == "llamacpp",
    }
    parts = (ServeSettings, ModelSettings, LoraSettings, HandshakeSettings, HttpSettings)
    defaults = {field.name: field.default for part in parts for field in msgspec.structs.fields(part)}
    with_this = f"is of no use with {_what_starts_none(settings)}"
    no_model = "is of no use without a MODEL"
    no_folder = "is of no use with a GGUF file" if settings.engine == "llamacpp" else no_model
    reasons = {"mock": "needs --engine mock", "MODEL": no_model, "model folder": no_folder}
    if _names_nothing(settings, given):
        reasons |= dict.fromkeys(_NEED_A_MODEL, f"{no_model}, which comes first, as in `northbound serve MODEL`")
    for flag in _FLAGS:
        if not in_use[flag.needs] and given.get(flag.key) not in (None, defaults[flag.setting]):
            raise UsageError(f"--{flag.name} {reasons.get(flag.needs, with_this)}")
    if settings.model.enable_per_request_metrics and given.get("disable_log_stats"):
        raise UsageError(
            "--enable-per-request-metrics is of no use with --disable-log-stats: the engine tells no times"
        )
    lora = settings.lora
    if settings.starts_engine and lora.lora_modules and not lora.enable_lora and "--enable-lora" not in passed_on:
        raise UsageError("--lora-modules needs --enable-lora")
    local = settings.data_parallel_size_local or 0
    if local > settings.data_parallel_size:
        most = settings.data_parallel_size
        raise UsageError(f"--data-parallel-size-local: expected at most {most}, the --data-parallel-size, not {local}")
