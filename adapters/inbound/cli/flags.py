"""Flags with a setting behind them. One table: argv, `--args-json`, the environment and help all read it.

A flag's default is that of the setting it fills.
"""

from typing import Literal

from msgspec import Struct

from adapters.inbound.cli.kinds import (
    OBJECT,
    PORT,
    SECONDS,
    SECRET,
    STRINGS,
    SWITCH,
    TOKENS_OR_AUTO,
    Kind,
    choice,
    integer,
    text,
    word,
)
from adapters.inbound.cli.lora_modules import LORA_MODULES

Group = Literal["serving", "access", "answers", "model", "engine", "mock", "vLLM hands over"]
GROUPS: dict[Group, str] = {
    "serving": "where and how HTTP is served",
    "access": "who may ask, and from which pages",
    "answers": "what answers tell",
    "model": "what is served",
    "engine": "what generates",
    "mock": "an engine that needs no model",
    "vLLM hands over": "what `vllm serve` gives the frontend it starts",
}


class Flag(Struct, frozen=True, kw_only=True):
    """A flag with a setting behind it."""

    name: str
    """As typed, without the dashes."""
    kind: Kind
    group: Group
    help: str
    ours: bool = False
    """Northbound's own among vLLM's."""
    aliases: tuple[str, ...] = ()
    fills: str = ""
    """The setting, where it is not named like the flag."""
    env: str = ""
    """The variable that stands in for the flag: with `many`, for several words with commas between them."""
    env_is_one: bool = False
    """Whether the variable is one word, commas and all."""
    many: bool = False
    """Takes one or more words; the last time it is given counts."""
    repeatable: bool = False
    """With `many`: every time it is given counts."""
    required: bool = False
    for_engine: bool = False
    """An engine started here is given it too."""
    needs: Literal[
        "", "MODEL", "model folder", "mock", "vllm", "adapters", "engine started here", "engine run here"
    ] = ""
    """What must be in use for the flag to mean anything."""

    @property
    def key(self) -> str:
        """The name in JSON."""
        return self.name.replace("-", "_")

    @property
    def setting(self) -> str:
        return self.fills or self.key

    @property
    def spellings(self) -> tuple[str, ...]:
        return (f"--{self.name}", *self.aliases)


SHARED = (
    Flag(name="host", kind=text("HOST"), group="serving", help="address to listen on; all of them by default"),
    Flag(name="port", kind=PORT, group="serving", help="port to listen on; 0 picks a free one"),
    Flag(name="uds", kind=text("PATH"), group="serving", help="listen on this Unix socket instead of host and port"),
    Flag(
        name="http-timeout-keep-alive",
        kind=SECONDS,
        group="serving",
        env="VLLM_HTTP_TIMEOUT_KEEP_ALIVE",
        help="how long an idle connection is kept",
    ),
    Flag(
        name="http-max-request-body-size",
        kind=integer(0, metavar="BYTES"),
        group="serving",
        env="VLLM_HTTP_MAX_REQUEST_BODY_SIZE",
        help="the largest request body taken; 0 for no limit",
    ),
    Flag(
        name="shutdown-timeout",
        kind=SECONDS,
        group="serving",
        for_engine=True,
        help="how long running requests may still take when the server stops",
    ),
    Flag(
        name="log-level",
        kind=choice("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "NOTSET"),
        group="serving",
        env="VLLM_LOGGING_LEVEL",
        for_engine=True,
        help="how much is logged",
    ),
    Flag(
        name="root-path",
        kind=text("PATH"),
        group="serving",
        help="the prefix that a proxy routes by, whether it takes it off the path or not",
    ),
    Flag(
        name="enable-request-id-headers",
        kind=SWITCH,
        group="serving",
        help="give every answer an X-Request-Id header: the request's, or a random one",
    ),
    Flag(
        name="disable-fastapi-docs",
        kind=SWITCH,
        group="serving",
        help="serve no /openapi.json, /docs and /redoc",
    ),
    Flag(
        name="api-key",
        kind=SECRET,
        group="access",
        many=True,
        env="VLLM_API_KEY",
        env_is_one=True,
        help="keys, one of which requests to /v1, /v2 and /inference must bear",
    ),
    Flag(
        name="allowed-origins",
        kind=STRINGS,
        group="access",
        help='origins whose pages may ask, such as ["https://a.example"]; none by default',
    ),
    Flag(name="allowed-methods", kind=STRINGS, group="access", help="methods that such pages may use, all by default"),
    Flag(name="allowed-headers", kind=STRINGS, group="access", help="headers that such pages may send, all by default"),
    Flag(name="allow-credentials", kind=SWITCH, group="access", help="let such pages send credentials"),
    Flag(
        name="enable-force-include-usage",
        kind=SWITCH,
        group="answers",
        help="put the usage into every chunk of every stream, and into one of its own at the end",
    ),
    Flag(
        name="enable-prompt-tokens-details",
        kind=SWITCH,
        group="answers",
        help="tell how many of the prompt's tokens were cached",
    ),
    Flag(
        name="enable-per-request-metrics",
        kind=SWITCH,
        group="answers",
        help="tell how long the engine took for an answer of one choice",
    ),
    Flag(
        name="sse-keep-alive-interval",
        kind=SECONDS,
        group="serving",
        help="how long a stream may be silent before it sends a comment; 0 for ever",
    ),
    Flag(
        name="fingerprint-mode",
        kind=choice("full", "hash", "custom", "none"),
        group="answers",
        help="what system_fingerprint tells: version and a hash of what is served, --fingerprint-value, or nothing",
    ),
    Flag(name="fingerprint-value", kind=text("TEXT"), group="answers", help="the custom system_fingerprint"),
    Flag(
        name="stream-interval",
        kind=integer(1),
        group="answers",
        for_engine=True,
        help="tokens gathered for a chunk of a stream, but for the first and the last one",
    ),
    Flag(
        name="model",
        kind=text("MODEL"),
        group="model",
        help="the same as MODEL in first place: a folder or a name on the Hugging Face hub",
    ),
    Flag(
        name="served-model-name",
        kind=text("NAME"),
        group="model",
        many=True,
        fills="served_model_names",
        help="names that requests may use, the first of which answers carry; MODEL by default",
    ),
    Flag(
        name="tokenizer",
        kind=text("MODEL"),
        group="model",
        for_engine=True,
        needs="model folder",
        help="where the tokenizer is, if not with the model",
    ),
    Flag(
        name="revision",
        kind=text("REVISION"),
        group="model",
        for_engine=True,
        needs="model folder",
        help="the model's branch, tag or commit on the hub",
    ),
    Flag(
        name="tokenizer-revision",
        kind=text("REVISION"),
        group="model",
        for_engine=True,
        needs="model folder",
        help="the tokenizer's branch, tag or commit on the hub",
    ),
    Flag(
        name="trust-remote-code",
        kind=SWITCH,
        group="model",
        for_engine=True,
        needs="model folder",
        help="run code that comes with the model",
    ),
    Flag(
        name="generation-config",
        kind=text("SOURCE"),
        group="model",
        for_engine=True,
        needs="model folder",
        help="where sampling defaults come from: auto (the model), vllm (neutral ones) or a folder",
    ),
    Flag(
        name="override-generation-config",
        kind=OBJECT,
        group="model",
        for_engine=True,
        needs="model folder",
        help='sampling defaults that win over those, such as {"temperature": 0.5}',
    ),
    Flag(
        name="max-model-len",
        kind=TOKENS_OR_AUTO,
        group="model",
        for_engine=True,
        help="the most tokens of one request, prompt and output: 8192, 8k, auto; the model's own limit by default",
    ),
    Flag(
        name="max-logprobs",
        kind=integer(-1),
        group="model",
        for_engine=True,
        help="the most logprobs a request may ask for per token; -1 for the whole vocabulary",
    ),
    Flag(
        name="chat-template",
        kind=text("TEMPLATE"),
        group="model",
        needs="MODEL",
        help="a Jinja template, or a file with one, to write conversations by; the model's own by default",
    ),
    Flag(
        name="chat-template-content-format",
        kind=choice("auto", "string", "openai"),
        group="model",
        needs="MODEL",
        help="how the template takes content: as text, in parts, or as it seems to expect",
    ),
    Flag(
        name="default-chat-template-kwargs",
        kind=OBJECT,
        group="model",
        needs="MODEL",
        help="variables of the template, which a request's own chat_template_kwargs override",
    ),
    Flag(
        name="trust-request-chat-template",
        kind=SWITCH,
        group="model",
        needs="MODEL",
        help="let requests bring their own chat_template, which runs in this process",
    ),
    Flag(
        name="response-role",
        kind=text("ROLE"),
        group="answers",
        help="the role of answers in chat",
    ),
    Flag(
        name="enable-lora",
        kind=SWITCH,
        group="model",
        for_engine=True,
        needs="adapters",
        help="have the engine take LoRA adapters",
    ),
    Flag(
        name="lora-modules",
        kind=LORA_MODULES,
        group="model",
        many=True,
        needs="adapters",
        help="adapters to load at the start, which requests name as their model; or in JSON, with base_model_name",
    ),
    Flag(
        name="return-tokens-as-token-ids",
        kind=SWITCH,
        group="model",
        help="show logprob tokens as token_id:N in answers to requests that do not say",
    ),
    Flag(
        name="engine-ready-timeout-secs",
        kind=SECONDS,
        group="engine",
        fills="engine_ready_timeout_s",
        env="VLLM_ENGINE_READY_TIMEOUT_S",
        needs="vllm",
        help="how long the engine may take to start",
    ),
    Flag(
        name="allow-engine-version",
        kind=word("VERSION"),
        group="engine",
        ours=True,
        many=True,
        repeatable=True,
        env="NORTHBOUND_ALLOW_ENGINE_VERSION",
        needs="vllm",
        help="let in engines of this version too; may be repeated",
    ),
)
"""Of `serve`, and of `frontend` in --args-json."""
