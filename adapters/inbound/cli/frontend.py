"""`northbound frontend`: what `vllm serve` hands to the frontend it starts."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from adapters.inbound.cli.args_json import read_args_json
from adapters.inbound.cli.command_flags import FRONTEND
from adapters.inbound.cli.commands import frontend_parser
from adapters.inbound.cli.environment import allows_lora_updating, refuse_unbuilt, stand_ins
from adapters.inbound.cli.flags import SHARED
from adapters.inbound.cli.kinds import MOST_ENGINES
from adapters.inbound.cli.settings import FrontendSettings
from adapters.inbound.cli.shared import fill, handshake_settings, http_settings, lora_settings, model_settings
from adapters.inbound.cli.usage import UsageError


def read_frontend(words: Sequence[str], environ: Mapping[str, str]) -> FrontendSettings:
    """Raises UsageError."""
    given, rest = frontend_parser().read(words)
    if rest:
        raise UsageError(f"unexpected argument {rest[0]!r}")
    for name in ("coordinator_address", "grpc_listen_fd"):
        if name in given:
            raise UsageError(f"--{name.replace('_', '-')} is not supported by Northbound yet")
    _check_handed_over(given)
    values = stand_ins(SHARED, environ) | read_args_json(given["args_json"])
    refuse_unbuilt(environ)
    model = values.get("model_tag") or values.get("model")
    if model is None:
        raise UsageError("--args-json: model_tag is missing")
    return fill(
        FrontendSettings,
        FRONTEND,
        given,
        http=http_settings(values),
        model=model_settings(values, model, model),
        handshake=handshake_settings(values),
        lora=lora_settings(values, allows_updating=allows_lora_updating(environ)),
    )


def _check_handed_over(given: Mapping[str, Any]) -> None:
    flags = ("listen_fd", "input_listener_fd", "output_listener_fd")
    for before, name in combinations(flags, 2):
        if given[name] == given[before]:
            raise UsageError(f"--{name.replace('_', '-')}: {given[name]} is --{before.replace('_', '-')}")
    if given["engine_start_index"] + given["engine_count"] > MOST_ENGINES:
        raise UsageError(f"--engine-start-index: the last of --engine-count engines is beyond {MOST_ENGINES - 1}")
