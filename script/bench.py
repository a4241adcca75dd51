"""Measures what serving costs, this Northbound beside vLLM's frontends."""

import argparse
import functools
import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec
from token_cost import unpack

from tests.bench import vllm_rs
from tests.bench.frontends import Command, Engine, Frontend, fastapi, northbound, rust
from tests.bench.measure import in_turns, own_client
from tests.bench.plot import svg
from tests.bench.report import Report, started
from tests.bench.workloads import Sizes, workloads
from tests.fakes.tokenizers import write_model_folder

OURS = "northbound"
WORKLOADS = list(workloads(Sizes()))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="script/bench", description="What serving costs, beside vLLM's frontends.")
    paths = {"rust": "vLLM's program vllm-rs", "fastapi": "vLLM's command vllm", "model": "a folder; needed for both"}
    for name, help_text in paths.items():
        variable = f"NORTHBOUND_BENCH_{name.upper()}"
        default = os.environ.get(variable) or None
        parser.add_argument(f"--{name}", type=Path, metavar="PATH", default=default, help=f"{help_text} ({variable})")
    parser.add_argument("--against", metavar="COMMIT", help="measure this one of Northbound, too")
    parser.add_argument("--workloads", type=listed, default=WORKLOADS, metavar="NAMES", help=", ".join(WORKLOADS))
    parser.add_argument("--client", choices=["own", "vllm-rs"], help="default: vllm-rs where there is --rust")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--step-ms", type=float, default=20.0, help="of the engine, a token for each request")
    for size in msgspec.structs.fields(Sizes):
        parser.add_argument(f"--{size.name.replace('_', '-')}", type=int, default=size.default)
    parser.add_argument("--holds", action="store_true", help="watch the event loop, which takes 3 us per token or so")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there, too")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw CPU per token there")
    given = parser.parse_args()
    if given.model is None and (given.rust or given.fastapi):
        parser.error("--rust and --fastapi need a --model")
    if given.client == "vllm-rs" and given.rust is None:
        parser.error("--client vllm-rs needs --rust")
    given.client = given.client or ("vllm-rs" if given.rust else "own")
    return given


def listed(names: str) -> list[str]:
    chosen = names.split(",")
    unknown = set(chosen) - set(WORKLOADS)
    if unknown:
        raise argparse.ArgumentTypeError(f"no {', '.join(sorted(unknown))}")
    return chosen


def commands(given: argparse.Namespace, model: Path, engine: Engine, folder: Path) -> dict[str, Command]:
    """By the names of the frontends."""
    named = {OURS: northbound(model, holds=folder / "holds" if given.holds else None)}
    if given.against:
        tree = folder / "against"
        tree.mkdir()
        unpack(given.against, tree)
        named[given.against[:10]] = northbound(model, tree)
    if given.rust:
        named["rust"] = rust(given.rust, model)
    if given.fastapi:
        named["fastapi"] = fastapi(given.fastapi, model, engine)
    return named


def run(given: argparse.Namespace, folder: Path) -> Report:
    """Raises AssertionError if a frontend does not start."""
    sizes = Sizes(**{name: getattr(given, name) for name in Sizes.__struct_fields__})
    model = given.model or write_model_folder(folder / "model")
    # What is so many words or tokens at the client may be more tokens at the frontend.
    room = 4096 + sizes.answer + 2 * max(sizes.prompt, sizes.long_prompt, sizes.scored_prompt)
    vocab_size = json.loads((model / "config.json").read_text())["vocab_size"]
    engine = Engine(step_ms=given.step_ms, vocab_size=vocab_size, max_model_len=room)
    client = functools.partial(vllm_rs.put_load, given.rust, model) if given.client == "vllm-rs" else own_client
    settings = {"step_ms": given.step_ms, "repeats": given.repeats, "client": given.client}
    report = Report(OURS, settings | msgspec.to_builtins(sizes))
    asked = {name: workload for name, workload in workloads(sizes).items() if name in given.workloads}
    with ExitStack() as stack:
        frontends = []
        for name, command in commands(given, model, engine, folder).items():
            frontend = Frontend(name, command, engine, folder)
            stack.callback(frontend.kill)
            frontends.append(frontend)
            report.add_start(name, started(frontend))
        for workload, name, figures in in_turns(frontends, asked, given.repeats, client):
            report.add_run(workload, name, figures)
            print(f"{workload:22}{name:12}{figures}", file=sys.stderr, flush=True)
    return report


def main() -> None:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="northbound-bench-") as folder:
        report = run(given, Path(folder))
    print(report.as_text())
    measured = msgspec.to_builtins(report.as_json())
    if given.json:
        given.json.write_text(json.dumps(measured, indent=1) + "\n")
    if given.svg:
        given.svg.write_text(svg(measured))


if __name__ == "__main__":
    main()
