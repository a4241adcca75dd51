"""What a command line settles, as plain values. What they name is not looked at here: no file, no socket, no model."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from application.options import FingerprintMode, ServerOptions

DEFAULT_MODEL = "SmolLM2-135M-Instruct"
"""What llama.cpp runs if no model is named."""

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL", "NOTSET"]
StructuredOutputsBackend = Literal["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"]


class HttpSettings(Struct, frozen=True, kw_only=True):
    """Where and how HTTP is served."""

    host: str | None = None
    """None: every interface."""
    port: int = 8000
    """0: any free one."""
    uds: str | None = None
    """Path of a Unix socket, which takes the place of host and port."""
    http_timeout_keep_alive: int = 5
    """Seconds an idle connection is kept."""
    http_max_request_body_size: int = 32 * 1024 * 1024
    """Bytes; 0: no limit."""
    shutdown_timeout: int = 0
    """Seconds that running requests may still take once the server is told to stop."""
    log_level: LogLevel = "INFO"
    root_path: str | None = None
    """A prefix that paths may have. None: none."""
    enable_request_id_headers: bool = False
    disable_fastapi_docs: bool = False
    """Whether there is no /openapi.json, /docs and /redoc."""
    enable_tokenizer_info_endpoint: bool = False
    enable_scale_out: bool = False
    tokens_only: bool = False
    """One part of several, which takes tokens and gives tokens."""
    sse_keep_alive_interval: int = 0
    """Seconds after which a silent stream sends a comment; 0: never."""
    api_key: tuple[str, ...] = ()
    """None at all: whoever can connect may ask."""
    allowed_origins: tuple[str, ...] = ()
    """None at all: pages of other origins cannot ask."""
    allowed_methods: tuple[str, ...] = ("*",)
    allowed_headers: tuple[str, ...] = ("*",)
    allow_credentials: bool = False

    @property
    def serves_scale_out(self) -> bool:
        return self.enable_scale_out or self.tokens_only


class ModelSettings(Struct, frozen=True, kw_only=True):
    """Which model is served, and what is asked of it by default."""

    model: str | None = None
    """A folder or a name on the Hugging Face hub; for llama.cpp a GGUF file. None: the DEFAULT_MODEL for llama.cpp, no
    model at all for the mock engine."""
    served_model_names: tuple[str, ...]
    """At least one. Answers carry the first."""
    tokenizer: str | None = None
    """None: the model's."""
    revision: str | None = None
    tokenizer_revision: str | None = None
    trust_remote_code: bool = False
    generation_config: str = "auto"
    """`auto`: the model's own defaults, `vllm`: neutral ones, else the folder to read them from."""
    override_generation_config: Mapping[str, Any] | None = None
    """What wins over that, by the names of generation_config.json."""
    chat_template: str | None = None
    """A file, or a template itself. None: the model's own."""
    chat_template_content_format: Literal["auto", "string", "openai"] = "auto"
    default_chat_template_kwargs: Mapping[str, Any] | None = None
    trust_request_chat_template: bool = False
    response_role: str = "assistant"
    max_model_len: int | None = None
    """Tokens. None: the engine's to choose."""
    max_logprobs: int = 20
    """-1: the vocabulary."""
    return_tokens_as_token_ids: bool = False
    enable_force_include_usage: bool = False
    enable_prompt_tokens_details: bool = False
    enable_per_request_metrics: bool = False
    fingerprint_mode: FingerprintMode = "full"
    fingerprint_value: str | None = None
    stream_interval: int = 1
    """Tokens."""


class LoraModule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An adapter that is loaded before the first request."""

    name: Annotated[str, Meta(min_length=1)]
    path: Annotated[str, Meta(min_length=1)]
    base_model_name: str | None = None
    is_3d_lora_weight: bool = False


class LoraSettings(Struct, frozen=True, kw_only=True):
    """Which adapters are served beside the model."""

    enable_lora: bool = False
    """Whether an engine started here takes any."""
    lora_modules: tuple[LoraModule, ...] = ()
    allows_updating: bool = False
    """Whether clients may load and unload adapters."""


class HandshakeSettings(Struct, frozen=True, kw_only=True):
    """Which engines are let in, how long they may take, and what is known of them before."""

    engine_ready_timeout_s: int = 600
    allow_engine_version: tuple[str, ...] = ()
    """Versions let in besides the known ones."""
    structured_outputs_backend: StructuredOutputsBackend = "auto"
    """What engines are set to, here or wherever they are started."""


class ServeSettings(Struct, frozen=True, kw_only=True):
    """`northbound serve`"""

    http: HttpSettings
    model: ModelSettings
    handshake: HandshakeSettings
    lora: LoraSettings = LoraSettings()
    engine: Literal["vllm", "llamacpp", "mock"]
    max_num_seqs: int | None = None
    """Requests that the engine works on at a time. None: the engine's to choose."""
    mock_step_ms: float = 0.0
    python: str = field(default_factory=lambda: sys.executable)
    """The interpreter that runs the engine."""
    data_parallel_address: str = "127.0.0.1"
    data_parallel_rpc_port: int | None = None
    """None: any free one."""
    data_parallel_size: int = 1
    data_parallel_size_local: int | None = None
    """How many of the engines are started here. None: all of them; 0: none, they are started elsewhere."""
    engine_args: tuple[str, ...] = ()
    """What an engine started here is given after MODEL: flags meant for both sides, then its own as they came."""

    @property
    def starts_engine(self) -> bool:
        return self.engine == "vllm" and self.data_parallel_size_local != 0

    @property
    def owns_engine(self) -> bool:
        """Whether the engine ends with the server, and the server with it."""
        return self.starts_engine or self.engine == "llamacpp"

    def engine_argv(self) -> tuple[str, ...]:
        """What follows `vllm serve` for an engine started here, less the flags that say how the two sides meet:
        --headless, --data-parallel-address, -rpc-port, -size and -size-local."""
        if not self.starts_engine or self.model.model is None:
            return ()
        return (self.model.model, *self.engine_args)


class FrontendSettings(Struct, frozen=True, kw_only=True):
    """`northbound frontend`: the descriptors and engines that `vllm serve` hands over."""

    http: HttpSettings
    model: ModelSettings
    handshake: HandshakeSettings
    lora: LoraSettings = LoraSettings()
    listen_fd: int
    input_listener_fd: int
    output_listener_fd: int
    engine_start_index: int
    engine_count: int
    data_parallel_size: int


class RenderSettings(Struct, frozen=True, kw_only=True):
    """`northbound render`"""

    http: HttpSettings
    model: ModelSettings


class MockEngineSettings(Struct, frozen=True, kw_only=True):
    """`northbound mock-engine`"""

    handshake_address: str
    step_ms: float = 10.0
    tokens_per_step: int = 1
    engine_count: int = 1
    vocab_size: int = 49152
    max_model_len: int = 8192
    fail: str | None = None
    """How it fails; None: it does not."""
    fail_after: int = 0
    ready_delay_s: float = 0.0
    per_request_spec_decode_metrics: Literal["none", "summary", "detailed"] = "none"
    vllm_version: str | None = None
    """The version it claims. None: one that Northbound knows."""


def server_options(settings: ServeSettings | RenderSettings | FrontendSettings) -> ServerOptions:
    """The defaults of the response stage."""
    model = settings.model
    # of an engine elsewhere nothing is known
    knows_engine = not isinstance(settings, RenderSettings) or model.fingerprint_mode == "custom"
    return ServerOptions(
        default_return_tokens_as_token_ids=settings.model.return_tokens_as_token_ids,
        response_role=model.response_role,
        tokens_only=settings.http.tokens_only,
        forces_usage=model.enable_force_include_usage,
        tells_prompt_details=model.enable_prompt_tokens_details,
        tells_timing=model.enable_per_request_metrics,
        fingerprint_mode=model.fingerprint_mode if knows_engine else "none",
        fingerprint_value=model.fingerprint_value,
        stream_interval=model.stream_interval,
    )
