"""The commands: their flags and their help."""

import argparse
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from adapters.inbound.cli.arguments import Arguments
from adapters.inbound.cli.command_flags import FRONTEND, MOCK_ENGINE, RENDER, SERVE
from adapters.inbound.cli.flags import GROUPS, SHARED, Flag
from adapters.inbound.cli.settings import (
    HandshakeSettings,
    HttpSettings,
    LoraSettings,
    MockEngineSettings,
    ModelSettings,
    ServeSettings,
)
from adapters.inbound.cli.vllm_flags import VLLM_FLAGS

OVERVIEW = """\
usage: northbound COMMAND [flags]

An OpenAI-compatible HTTP frontend for vLLM's engine.

commands:
  serve [MODEL]   serve a model: by an engine started here or elsewhere, by llama.cpp, or a mock of one
  render MODEL    render and derender for engines elsewhere, without one
  frontend        be the frontend of `vllm serve`, which starts this command itself
  mock-engine     be an engine, as far as a frontend can tell, in a process of its own

flags:
  -h, --help      show this; `northbound COMMAND --help` shows the flags of a command
  -v, --version   show the version
"""

_SERVE_DESCRIPTION = """\
Serves MODEL over an OpenAI-compatible HTTP API: a folder or a name on the Hugging Face hub by vLLM, a GGUF file by
llama.cpp. Without MODEL it fetches a small one, once, for llama.cpp.

Flags have vLLM's names and meanings; those marked * are Northbound's own. A switch --x may also be written --no-x,
--x=true and --x=false. A flag --x that takes a JSON object may also be given key by key: --x.key VALUE.
"""
_SERVE_EPILOG = """\
Flags that are not listed go to the engine unread, with their values and in order, and so does everything after --.
Flags of vLLM's frontend that Northbound has not built yet fail the start, unless they are set to vLLM's default.

examples:
  northbound serve
  northbound serve FILE.gguf
  northbound serve --engine mock
  northbound serve Qwen/Qwen3-0.6B --max-model-len 8k --dtype bfloat16
  northbound serve Qwen/Qwen3-0.6B --data-parallel-size-local 0 --data-parallel-rpc-port 29550
"""
_FRONTEND_DESCRIPTION = """\
Serves HTTP for the engines of a running `vllm serve`, which starts this command itself:

  VLLM_USE_RUST_FRONTEND=1 VLLM_RUST_FRONTEND_PATH=$(which northbound) vllm serve MODEL
"""
_RENDER_DESCRIPTION = """\
Renders requests to tokens for engines elsewhere, and derenders what they generate. It needs MODEL's tokenizer and
config, and neither its weights nor an engine.
"""
_MOCK_ENGINE_DESCRIPTION = """\
Speaks an engine core's side of vLLM's protocol without a model: output is a function of prompt and seed.
"""


@cache
def serve_parser() -> Arguments:
    parser = _parser("serve [MODEL] [flags] [-- engine flags]", _SERVE_DESCRIPTION, _SERVE_EPILOG)
    _add(parser, (*SHARED, *SERVE), (HttpSettings, ModelSettings, LoraSettings, HandshakeSettings, ServeSettings))
    for flag in VLLM_FLAGS:
        parser.add_vllm_flag(flag)
    return parser


@cache
def render_parser() -> Arguments:
    parser = _parser("render MODEL [flags]", _RENDER_DESCRIPTION, "")
    _add(parser, RENDER, (HttpSettings, ModelSettings))
    for flag in VLLM_FLAGS:
        parser.add_vllm_flag(flag)
    return parser


def frontend_parser() -> Arguments:
    parser = _parser("frontend --listen-fd FD ... --args-json JSON", _FRONTEND_DESCRIPTION, "")
    _add(parser, FRONTEND, ())
    for unbuilt in ("--coordinator-address", "--grpc-listen-fd"):
        parser.add_argument(unbuilt, help=argparse.SUPPRESS)
    return parser


def mock_engine_parser() -> Arguments:
    parser = _parser("mock-engine --handshake-address ADDRESS [flags]", _MOCK_ENGINE_DESCRIPTION, "")
    _add(parser, MOCK_ENGINE, (MockEngineSettings,))
    return parser


def _parser(usage: str, description: str, epilog: str) -> Arguments:
    return Arguments(
        prog="northbound",
        usage=f"northbound {usage}",
        description=description,
        epilog=epilog,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=34),
    )


def _add(parser: Arguments, flags: Sequence[Flag], filled: Sequence[type[msgspec.Struct]]) -> None:
    defaults = {field.name: field.default for one in filled for field in msgspec.structs.fields(one)}
    for name, description in GROUPS.items():
        of_group = [flag for flag in flags if flag.group == name]
        if of_group:
            group = parser.add_argument_group(f"{name} ({description})")
            for flag in of_group:
                parser.add_flag(group, flag, _help(flag, defaults.get(flag.setting)))


def _help(flag: Flag, default: Any) -> str:
    notes = []
    if isinstance(default, str | int | float) and default is not False:
        notes.append(f"default: {default:g}" if isinstance(default, float) else f"default: {default}")
    if flag.env:
        notes.append(f"env: {flag.env}")
    text = f"* {flag.help}" if flag.ours else flag.help
    return f"{text} ({', '.join(notes)})" if notes else text
