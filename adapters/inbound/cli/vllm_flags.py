"""Flags of vLLM's with no setting here: each is either not built, and refused unless its value asks for nothing, or
means nothing here, and ignored.

vLLM's defaults ask for nothing. Flags that only the engine reads are not listed: they are passed on unread.
"""

from collections.abc import Callable, Iterator
from typing import Literal, get_args

from msgspec import Struct

from adapters.inbound.cli.settings import StructuredOutputsBackend
from adapters.inbound.cli.usage import UsageError


class VllmFlag(Struct, frozen=True, kw_only=True):
    """A flag that nothing here reads further."""

    name: str
    takes: Literal["nothing", "a value", "values", "a value or nothing", "a value each time"]
    asks_for_nothing: Callable[[object], bool]
    aliases: tuple[str, ...] = ()
    for_engine: bool = False
    """An engine started here is given it too."""
    for_launcher: bool = False
    """`vllm serve` acts on it before it starts a frontend, so in --args-json it is ignored."""
    hint: str = ""

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    @property
    def spellings(self) -> tuple[str, ...]:
        return (f"--{self.name}", *self.aliases)

    def check(self, value: object, spelling: str) -> None:
        """Raises UsageError if the value asks for what is not built. The value may be a secret and is not shown."""
        if not self.asks_for_nothing(value):
            raise UsageError(f"{spelling} is not supported by Northbound yet{self.hint}")


_EMPTY: tuple[object, ...] = (None, "", [], {})


def _only(*values: object) -> Callable[[object], bool]:
    return lambda value: any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)


def _anything(_: object) -> bool:
    return True


def _is_not_zero(value: object) -> bool:
    return value != 0


def _holds_nothing(values: object) -> bool:
    return isinstance(values, list) and not any(values)


def _profiles_nothing(config: object) -> bool:
    # vllm serve writes it out in full even when it was not given, with no profiler in it
    return config in _EMPTY or (isinstance(config, dict) and not config.get("profiler"))


_BACKENDS = get_args(StructuredOutputsBackend)


def _parses_no_reasoning(config: object) -> bool:
    parsers = ("reasoning_parser", "reasoning_parser_plugin")
    if not isinstance(config, dict) or any(config.get(parser) for parser in parsers):
        return False
    return config.get("backend", "auto") in _BACKENDS


def _switches(default: bool, names: str) -> Iterator[VllmFlag]:
    for name in names.split():
        yield VllmFlag(name=name, takes="nothing", asks_for_nothing=_only(default))


def _values(defaults: dict[str, object]) -> Iterator[VllmFlag]:
    for name, default in defaults.items():
        asks_for_nothing = _only(default) if default not in _EMPTY else _only(*_EMPTY)
        yield VllmFlag(name=name, takes="a value", asks_for_nothing=asks_for_nothing)


_OF_THE_FRONTEND = (
    *_switches(
        False,
        """
        enable-auto-tool-choice enable-log-outputs enable-log-requests enable-offline-docs
        enable-server-load-tracking enable-ssl-refresh
        exclude-tools-when-tool-choice-none log-error-stack trust-request-mm-kwargs
        """,
    ),
    *_switches(True, "cohere-is-reasoning-model enable-log-deltas"),
    *_values(
        {
            "anthropic-disabled-thinking-effort": "auto",
            "cohere-format": "cmd4",
            "grpc-port": None,
            "h11-max-header-count": 256,
            "h11-max-incomplete-event-size": 4194304,
            "max-log-len": None,
            "reasoning-effort-map": None,
            "ssl-ca-certs": None,
            "ssl-cert-reqs": 0,
            "ssl-certfile": None,
            "ssl-ciphers": None,
            "ssl-keyfile": None,
            "tool-call-parser": None,
            "tool-parser-plugin": "",
            "tool-server": None,
            "tool-strict-level": "auto",
            "uvicorn-log-level": "info",
        }
    ),
    VllmFlag(name="middleware", takes="a value each time", asks_for_nothing=_holds_nothing),
)

_OF_BOTH_SIDES = (
    *_switches(
        False,
        """
        aggregate-engine-logging enable-elastic-ep enable-fault-tolerance enable-mm-embeds
        enable-prompt-embeds enable-return-routed-experts enable-tower-connector-lora interleave-mm-strings
        kv-sharing-fast-prefill return-sampling-mask skip-tokenizer-init
        """,
    ),
    *_values(
        {
            "allowed-local-media-path": "",
            "aux-output-config": None,
            "custom-histogram-buckets": None,
            "default-mm-loras": None,
            "hf-config-path": None,
            "io-processor-plugin": None,
            "log-config-file": None,
            "logging-config": None,
            "max-num-queued-reqs": None,
            "max-num-queued-tokens": None,
            "media-io-kwargs": {},
            "mm-hasher-algorithm": "blake3",
            "mm-ipc-gpu-memory-gb": 0,
            "mm-processor-cache-gb": 4,
            "mm-processor-cache-type": "lru",
            "mm-processor-device": "auto",
            "mm-processor-kwargs": None,
            "mm-tensor-ipc": "direct_rpc",
            "otlp-traces-endpoint": None,
            "reasoning-parser": "",
            "reasoning-parser-plugin": "",
            "show-hidden-metrics-for-version": None,
            "watermark-config": None,
        }
    ),
    VllmFlag(name="allowed-media-domains", takes="values", asks_for_nothing=_only(*_EMPTY)),
    VllmFlag(name="collect-detailed-traces", takes="values", asks_for_nothing=_only(*_EMPTY)),
    VllmFlag(
        name="hf-token",
        takes="a value or nothing",
        asks_for_nothing=_only(None),
        hint="; set HF_TOKEN in the environment instead",
    ),
    VllmFlag(name="runner", takes="a value", asks_for_nothing=_only("auto", "generate"), for_engine=True),
    VllmFlag(name="convert", takes="a value", asks_for_nothing=_only("auto", "none"), for_engine=True),
    VllmFlag(name="tokenizer-mode", takes="a value", asks_for_nothing=_only("auto", "hf"), for_engine=True),
    VllmFlag(name="profiler-config", takes="a value", asks_for_nothing=_profiles_nothing),
    # All but the reasoning parser in it is the engine's; the backend is both sides'.
    VllmFlag(name="structured-outputs-config", takes="a value", asks_for_nothing=_parses_no_reasoning, for_engine=True),
)

_OF_THE_LAUNCHER = (
    VllmFlag(
        name="headless",
        takes="nothing",
        asks_for_nothing=_only(False),
        hint="; start engines without a frontend with `vllm serve --headless`",
    ),
    VllmFlag(name="grpc", takes="nothing", asks_for_nothing=_only(False)),
    VllmFlag(
        name="data-parallel-backend",
        takes="a value",
        asks_for_nothing=_only("mp"),
        aliases=("-dpb",),
        for_launcher=True,
    ),
    VllmFlag(
        name="data-parallel-rank", takes="a value", asks_for_nothing=_only(None), aliases=("-dpn",), for_launcher=True
    ),
    VllmFlag(
        name="data-parallel-start-rank",
        takes="a value",
        asks_for_nothing=_only(None),
        aliases=("-dpr",),
        for_launcher=True,
    ),
    *(
        VllmFlag(name=name, takes="nothing", asks_for_nothing=_only(False), aliases=(alias,), for_launcher=True)
        for name, alias in (
            ("data-parallel-hybrid-lb", "-dph"),
            ("data-parallel-external-lb", "-dpe"),
            ("data-parallel-multi-port-external-lb", "-dpm"),
        )
    ),
    *(
        VllmFlag(name=name, takes="a value", asks_for_nothing=_only(default), for_launcher=True)
        for name, default in (
            ("data-parallel-supervisor-port", 9256),
            ("dp-supervisor-probe-failure-threshold", 3),
            ("dp-supervisor-probe-interval-s", 5),
            ("dp-supervisor-probe-timeout-s", 5),
        )
    ),
)

_MEANINGLESS_HERE = (
    # There is no access log, no pooling, one process and no pool of renderers.
    *(
        VllmFlag(name=name, takes="nothing", asks_for_nothing=_anything)
        for name in ("disable-uvicorn-access-log", "enable-flash-late-interaction")
    ),
    *(
        VllmFlag(name=name, takes="a value", asks_for_nothing=_anything)
        for name in ("disable-access-log-for-endpoints", "renderer-num-workers")
    ),
    # None at all would be an engine without a frontend.
    VllmFlag(name="api-server-count", takes="a value", asks_for_nothing=_is_not_zero, aliases=("-asc",)),
    VllmFlag(name="disable-log-stats", takes="nothing", asks_for_nothing=_anything, for_engine=True),
)

VLLM_FLAGS = (*_OF_THE_FRONTEND, *_OF_BOTH_SIDES, *_OF_THE_LAUNCHER, *_MEANINGLESS_HERE)
