"""The flags of one command alone."""

from adapters.inbound.cli.flags import SHARED, Flag
from adapters.inbound.cli.kinds import (
    DESCRIPTOR,
    ENGINES,
    MOST_ENGINES,
    PORT,
    TOKENS,
    choice,
    integer,
    number,
    text,
    word,
)

SERVE = (
    Flag(
        name="config",
        kind=word("FILE"),
        group="serving",
        help="YAML with flags by name, which those of the command line win over",
    ),
    Flag(
        name="engine",
        kind=choice("auto", "vllm", "llamacpp", "mock"),
        group="engine",
        ours=True,
        help="what generates; by default llama.cpp for a GGUF file or without a MODEL, else vLLM",
    ),
    Flag(
        name="python",
        kind=text("PATH"),
        group="engine",
        ours=True,
        env="NORTHBOUND_PYTHON",
        needs="engine started here",
        help="the interpreter that has vLLM; the one that runs Northbound by default",
    ),
    Flag(
        name="data-parallel-address",
        kind=text("HOST"),
        group="engine",
        aliases=("-dpa", "--handshake-host"),
        needs="vllm",
        help="address at which engines report to Northbound",
    ),
    Flag(
        name="data-parallel-rpc-port",
        kind=PORT,
        group="engine",
        aliases=("-dpp", "--handshake-port"),
        needs="vllm",
        help="port at which engines report to Northbound; any free one by default",
    ),
    Flag(
        name="data-parallel-size",
        kind=ENGINES,
        group="engine",
        aliases=("-dp",),
        needs="vllm",
        help="how many engines there are",
    ),
    Flag(
        name="data-parallel-size-local",
        kind=integer(0),
        group="engine",
        aliases=("-dpl",),
        needs="vllm",
        help="how many of them are started here, all by default; 0 waits for engines started elsewhere",
    ),
    Flag(
        name="max-num-seqs",
        kind=integer(1),
        group="engine",
        for_engine=True,
        needs="engine run here",
        help="how many requests it works on at a time; 4 with llama.cpp, vLLM's own choice else",
    ),
    Flag(
        name="mock-step-ms",
        kind=number("MS", 10**9),
        group="mock",
        ours=True,
        needs="mock",
        help="how long the mock engine takes per token",
    ),
)

RENDER = tuple(
    flag
    for flag in SHARED
    if flag.needs in ("", "MODEL")
    and flag.name not in ("enable-scale-out", "tokens-only", "enable-lora", "lora-modules")
)
"""Of what `serve` takes, all that is not about engines."""

FRONTEND = (
    Flag(name="listen-fd", kind=DESCRIPTOR, group="vLLM hands over", required=True, help="the bound HTTP socket"),
    Flag(
        name="input-listener-fd",
        kind=DESCRIPTOR,
        group="vLLM hands over",
        required=True,
        help="ZMQ listener for input to the engines",
    ),
    Flag(
        name="output-listener-fd",
        kind=DESCRIPTOR,
        group="vLLM hands over",
        required=True,
        help="ZMQ listener for output of the engines",
    ),
    Flag(
        name="engine-start-index",
        kind=integer(0, MOST_ENGINES - 1),
        group="vLLM hands over",
        required=True,
        help="rank of the first engine",
    ),
    Flag(name="engine-count", kind=ENGINES, group="vLLM hands over", required=True, help="how many engines there are"),
    Flag(
        name="data-parallel-size",
        kind=ENGINES,
        group="vLLM hands over",
        required=True,
        help="how many engines the deployment has",
    ),
    Flag(
        name="args-json",
        kind=word("JSON"),
        group="vLLM hands over",
        required=True,
        help="the flags of `vllm serve`, as a JSON object in snake case",
    ),
)

MOCK_ENGINE = (
    Flag(
        name="handshake-address",
        kind=word("ADDRESS"),
        group="mock",
        required=True,
        help="where the frontend waits for engines, such as tcp://127.0.0.1:29550",
    ),
    Flag(name="engine-count", kind=integer(1, 256), group="mock", help="how many engines to be"),
    Flag(name="step-ms", kind=number("MS", 10**9), group="mock", help="how long an engine step takes"),
    Flag(
        name="tokens-per-step",
        kind=integer(1),
        group="mock",
        help="how many tokens a step brings per request",
    ),
    Flag(name="vocab-size", kind=integer(1, 10**7), group="mock", help="how many token ids there are"),
    Flag(name="max-model-len", kind=TOKENS, group="mock", help="the most tokens of one request"),
    Flag(name="fail", kind=text("MODE"), group="mock", help="fail in this way"),
    Flag(name="fail-after", kind=integer(0), group="mock", help="fail once this much went well"),
    Flag(name="ready-delay-s", kind=number("SECONDS", 10**6), group="mock", help="how long starting takes"),
    Flag(
        name="per-request-spec-decode-metrics",
        kind=choice("none", "summary", "detailed"),
        group="mock",
        help="take the further tokens of each step for drafts, and tell how many there were",
    ),
    Flag(name="vllm-version", kind=text("VERSION"), group="mock", help="the version to claim"),
)
