"""What vLLM's frontend does and this one does not yet: refused by name unless it asks for nothing."""

from typing import Any

import pytest

from adapters.inbound.cli.vllm_flags import VLLM_FLAGS
from tests.cli.commands import Refusals, frontend, serve

SWITCHES = [
    "aggregate-engine-logging",
    "enable-auto-tool-choice",
    "enable-elastic-ep",
    "enable-fault-tolerance",
    "enable-log-outputs",
    "enable-log-requests",
    "enable-mm-embeds",
    "enable-offline-docs",
    "enable-prompt-embeds",
    "enable-return-routed-experts",
    "enable-server-load-tracking",
    "enable-ssl-refresh",
    "enable-tower-connector-lora",
    "exclude-tools-when-tool-choice-none",
    "grpc",
    "headless",
    "interleave-mm-strings",
    "kv-sharing-fast-prefill",
    "log-error-stack",
    "return-sampling-mask",
    "skip-tokenizer-init",
    "trust-request-mm-kwargs",
]
# Flag, a word that asks for something, the same in JSON, a word that asks for nothing, the same in JSON.
VALUES: list[tuple[str, str, Any, str, Any]] = [
    ("allowed-local-media-path", "/srv", "/srv", "", ""),
    ("allowed-media-domains", "example.com", ["example.com"], "", []),
    ("anthropic-disabled-thinking-effort", "low", "low", "auto", "auto"),
    ("aux-output-config", '{"a": 1}', {"a": 1}, "{}", {}),
    ("cohere-format", "cmd3", "cmd3", "cmd4", "cmd4"),
    ("collect-detailed-traces", "all", ["all"], "", []),
    ("convert", "embed", "embed", "none", "none"),
    ("custom-histogram-buckets", '{"a": [1]}', {"a": [1]}, "", None),
    ("default-mm-loras", '{"image": "x"}', {"image": "x"}, "", None),
    ("grpc-port", "9000", 9000, "", None),
    ("h11-max-header-count", "8", 8, "256", 256),
    ("h11-max-incomplete-event-size", "8", 8, "4194304", 4194304),
    ("hf-config-path", "/srv", "/srv", "", None),
    ("hf-token", "secret", "secret", "", None),
    ("io-processor-plugin", "p", "p", "", None),
    ("log-config-file", "l.json", "l.json", "", None),
    ("logging-config", '{"formatter": "json"}', {"formatter": "json"}, "", None),
    ("max-log-len", "0", 0, "None", None),
    ("max-num-queued-reqs", "0", 0, "None", None),
    ("max-num-queued-tokens", "8k", 8000, "None", None),
    ("media-io-kwargs", '{"image": {}}', {"image": {}}, "{}", {}),
    ("middleware", "a.b", ["a.b"], "[]", []),
    ("mm-hasher-algorithm", "sha256", "sha256", "blake3", "blake3"),
    ("mm-ipc-gpu-memory-gb", "1", 1, "0", 0.0),
    ("mm-processor-cache-gb", "0", 0, "4", 4),
    ("mm-processor-cache-type", "shm", "shm", "lru", "lru"),
    ("mm-processor-device", "cpu", "cpu", "auto", "auto"),
    ("mm-processor-kwargs", '{"a": 1}', {"a": 1}, "", None),
    ("mm-tensor-ipc", "torch_shm", "torch_shm", "direct_rpc", "direct_rpc"),
    ("otlp-traces-endpoint", "grpc://x", "grpc://x", "", None),
    (
        "profiler-config",
        '{"profiler": "torch"}',
        {"profiler": "torch"},
        "{}",
        {"profiler": None, "torch_profiler_dir": "", "torch_profiler_with_stack": True},
    ),
    ("reasoning-effort-map", '{"low": "none"}', {"low": "none"}, "", None),
    ("reasoning-parser", "qwen3", "qwen3", "", ""),
    ("reasoning-parser-plugin", "p.py", "p.py", "", ""),
    ("runner", "pooling", "pooling", "generate", "generate"),
    ("show-hidden-metrics-for-version", "0.31", "0.31", "", None),
    ("ssl-ca-certs", "c.pem", "c.pem", "", None),
    ("ssl-cert-reqs", "1", 1, "0", 0),
    ("ssl-certfile", "c.pem", "c.pem", "", None),
    ("ssl-ciphers", "X", "X", "", None),
    ("ssl-keyfile", "k.pem", "k.pem", "", None),
    (
        "structured-outputs-config",
        '{"reasoning_parser": "qwen3"}',
        {"reasoning_parser": "qwen3"},
        '{"backend": "auto", "reasoning_parser": ""}',
        {"backend": "auto", "reasoning_parser": ""},
    ),
    ("tokenizer-mode", "mistral", "mistral", "auto", "hf"),
    ("tool-call-parser", "hermes", "hermes", "", None),
    ("tool-parser-plugin", "p.py", "p.py", "", ""),
    ("tool-server", "demo", "demo", "", None),
    ("tool-strict-level", "function", "function", "auto", "auto"),
    ("uvicorn-log-level", "debug", "debug", "info", "info"),
    ("watermark-config", '{"a": 1}', {"a": 1}, "", None),
]
OF_THE_LAUNCHER: list[tuple[str, str, Any, str]] = [
    ("data-parallel-backend", "ray", "ray", "mp"),
    ("data-parallel-rank", "0", 0, ""),
    ("data-parallel-start-rank", "1", 1, ""),
    ("data-parallel-supervisor-port", "9", 9, "9256"),
    ("dp-supervisor-probe-failure-threshold", "1", 1, "3"),
    ("dp-supervisor-probe-interval-s", "1", 1.0, "5"),
    ("dp-supervisor-probe-timeout-s", "1", 1.0, "5.0"),
]
LAUNCHER_SWITCHES = ["data-parallel-hybrid-lb", "data-parallel-external-lb", "data-parallel-multi-port-external-lb"]
IGNORED_SWITCHES = ["disable-uvicorn-access-log", "disable-log-stats"]
IGNORED_VALUES = [
    ("api-server-count", "4", 4),
    ("disable-access-log-for-endpoints", "/health", "/health"),
    ("renderer-num-workers", "2", 2),
]


def key(flag: str) -> str:
    return flag.replace("-", "_")


@pytest.mark.parametrize("flag", SWITCHES)
def test_a_switch_that_is_not_built_fails_the_start(refused: Refusals, flag: str) -> None:
    assert refused.serve("m", f"--{flag}").startswith(f"--{flag} is not supported by Northbound yet")
    assert refused.serve("m", f"--{key(flag)}=true").startswith(f"--{flag} is not supported by Northbound yet")
    said = refused.frontend({"model_tag": "m", key(flag): True})
    assert said.startswith(f"--args-json: {key(flag)} is not supported by Northbound yet")


@pytest.mark.parametrize("flag", SWITCHES)
def test_a_switch_that_is_off_passes(flag: str) -> None:
    assert serve("m", f"--no-{flag}") == serve("m")
    assert serve("m", f"--{flag}=false") == serve("m")
    assert frontend({"model_tag": "m", key(flag): False}) == frontend({"model_tag": "m"})


@pytest.mark.parametrize("flag", ["enable-log-deltas", "cohere-is-reasoning-model"])
def test_a_switch_that_is_on_by_default_may_not_be_off(refused: Refusals, flag: str) -> None:
    assert refused.serve("m", f"--no-{flag}") == f"--no-{flag} is not supported by Northbound yet"
    said = refused.frontend({"model_tag": "m", key(flag): False})
    assert said == f"--args-json: {key(flag)} is not supported by Northbound yet"
    assert serve("m", f"--{flag}") == serve("m")
    assert frontend({"model_tag": "m", key(flag): True}) == frontend({"model_tag": "m"})


@pytest.mark.parametrize(("flag", "words", "value"), [(flag, words, value) for flag, words, value, _, _ in VALUES])
def test_a_value_that_is_not_built_fails_the_start(refused: Refusals, flag: str, words: str, value: Any) -> None:
    refusal = f"--{flag} is not supported by Northbound yet"
    assert refused.serve("m", f"--{flag}", words).startswith(refusal)
    assert refused.serve("m", f"--{key(flag)}={words}").startswith(refusal)
    assert refused.serve("--engine", "mock", f"--{flag}", words).startswith(refusal)
    said = refused.frontend({"model_tag": "m", key(flag): value})
    assert said.startswith(f"--args-json: {key(flag)} is not supported by Northbound yet")


@pytest.mark.parametrize(
    ("flag", "words", "value"),
    # An empty middleware is none of them.
    [(flag, words, value) for flag, _, _, words, value in VALUES],
)
def test_a_default_given_explicitly_passes(flag: str, words: str, value: Any) -> None:
    if flag not in ("allowed-media-domains", "collect-detailed-traces"):
        assert serve("m", f"--{flag}", words).model == serve("m").model
    assert frontend({"model_tag": "m", key(flag): value}) == frontend({"model_tag": "m"})
    assert frontend({"model_tag": "m", key(flag): None}) == frontend({"model_tag": "m"})


def test_middleware_adds_up(refused: Refusals) -> None:
    said = refused.serve("m", "--middleware", "a.b", "--middleware", "")
    assert said == "--middleware is not supported by Northbound yet"


@pytest.mark.parametrize(
    "word",
    [
        "--middlewar",
        "--middlewar=s",
        "--tokens-onl",
        "--no-enable-log-del",
        "--max-model",
        "--structured-outputs-c.x=1",
        "--override-gen.x=1",
    ],
)
def test_the_beginning_of_a_flag_does_not_slip_through_to_the_engine(refused: Refusals, word: str) -> None:
    assert "not a flag; did you mean --" in refused.serve("m", word, "1")


def test_engine_flags_that_begin_like_others_do_not_pass_for_them() -> None:
    assert serve("m", "--watermark", "0.1").engine_args == ("--watermark", "0.1")


def test_one_key_of_a_value_is_refused_like_the_value(refused: Refusals) -> None:
    said = refused.serve("m", "--structured_outputs_config.reasoning_parser=qwen3")
    assert said == "--structured-outputs-config is not supported by Northbound yet"
    said = refused.serve("m", "--mm-processor-kwargs.a", "1")
    assert said == "--mm-processor-kwargs is not supported by Northbound yet"
    assert serve("m", "--structured-outputs-config.reasoning_parser=") == serve(
        "m", "--structured-outputs-config", '{"reasoning_parser": ""}'
    )


def test_the_engine_s_part_of_a_value_reaches_it() -> None:
    assert serve("m", "--structured-outputs-config.backend", "xgrammar").engine_args == (
        "--structured-outputs-config",
        '{"backend":"xgrammar"}',
    )
    settings = serve("m", "--structured-outputs-config", '{"backend": "xgrammar"}', "--runner", "generate")
    assert settings.engine_args == ("--runner", "generate", "--structured-outputs-config", '{"backend":"xgrammar"}')


@pytest.mark.parametrize(("flag", "words", "value", "default"), OF_THE_LAUNCHER)
def test_what_the_launcher_acts_on_is_refused_only_where_there_is_none(
    refused: Refusals, flag: str, words: str, value: Any, default: str
) -> None:
    assert refused.serve("m", f"--{flag}", words) == f"--{flag} is not supported by Northbound yet"
    assert serve("m", f"--{flag}", default) == serve("m")
    assert frontend({"model_tag": "m", key(flag): value}) == frontend({"model_tag": "m"})


@pytest.mark.parametrize("flag", LAUNCHER_SWITCHES)
def test_load_balancing_of_the_launcher_likewise(refused: Refusals, flag: str) -> None:
    assert refused.serve("m", f"--{flag}") == f"--{flag} is not supported by Northbound yet"
    assert frontend({"model_tag": "m", key(flag): True}) == frontend({"model_tag": "m"})


def test_what_means_nothing_here_is_ignored() -> None:
    words = [f"--{flag}" for flag in IGNORED_SWITCHES] + ["--no-enable-flash-late-interaction"]
    words += [word for flag, text, _ in IGNORED_VALUES for word in (f"--{flag}", text)]
    settings = serve("m", *words)
    assert settings.http == serve("m").http
    assert settings.model == serve("m").model
    assert settings.engine_args == ("--disable-log-stats",)
    args: dict[str, Any] = {key(flag): True for flag in IGNORED_SWITCHES} | {"enable_flash_late_interaction": False}
    args |= {key(flag): value for flag, _, value in IGNORED_VALUES}
    assert frontend({"model_tag": "m", **args}) == frontend({"model_tag": "m"})


def test_no_server_at_all_is_not_ignored(refused: Refusals) -> None:
    assert refused.serve("m", "-asc", "0") == "--api-server-count is not supported by Northbound yet"


def test_a_key_with_dashes_is_the_same_key(refused: Refusals) -> None:
    assert refused.frontend({"model_tag": "m", "tool-server": "demo"}) == (
        "--args-json: tool_server is not supported by Northbound yet"
    )


@pytest.mark.parametrize("words", ["--coordinator-address=ipc:///tmp/c", "--grpc-listen-fd=9"])
def test_what_the_launcher_hands_over_and_is_not_built(refused: Refusals, words: str) -> None:
    flag = words.partition("=")[0]
    assert refused.frontend({"model_tag": "m"}, words) == f"{flag} is not supported by Northbound yet"


def test_every_flag_of_vllm_s_is_in_a_list_above() -> None:
    tested = {*SWITCHES, *LAUNCHER_SWITCHES, *IGNORED_SWITCHES, "enable-log-deltas", "cohere-is-reasoning-model"}
    tested |= (
        {case[0] for case in VALUES} | {case[0] for case in OF_THE_LAUNCHER} | {case[0] for case in IGNORED_VALUES}
    )
    tested |= {"enable-flash-late-interaction"}
    assert {flag.name for flag in VLLM_FLAGS} == tested


@pytest.mark.parametrize(
    ("name", "asking", "asking_for_nothing"),
    [
        ("VLLM_SERVER_DEV_MODE", "1", "0"),
        ("VLLM_LORA_RESOLVER_CACHE_DIR", "/srv", ""),
        ("VLLM_LORA_RESOLVER_HF_REPO_LIST", "a/b", ""),
        ("VLLM_SKIP_MODEL_NAME_VALIDATION", "1", "0"),
        ("VLLM_KEEP_ALIVE_ON_ENGINE_DEATH", "1", "0"),
        ("VLLM_DEBUG_LOG_API_SERVER_RESPONSE", "true", "false"),
        ("VLLM_ENABLE_COHERE_API", "1", "0"),
        ("VLLM_ENABLE_RESPONSES_API_STORE", "1", "0"),
        ("VLLM_USE_MODELSCOPE", "true", ""),
        ("VLLM_MAX_N_SEQUENCES", "8", "16384"),
        ("VLLM_MAX_COMPLETION_PROMPTS", "8", "1024"),
        ("VLLM_MAX_STOP_STRINGS", "8", "4"),
        ("VLLM_MAX_NUM_BAD_WORDS", "8", "128"),
        ("VLLM_MAX_BAD_WORDS_TOTAL_TOKENS", "8", "1024"),
        ("VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT", "5", "30"),
    ],
)
def test_the_environment_cannot_ask_for_it_either(
    refused: Refusals, name: str, asking: str, asking_for_nothing: str
) -> None:
    refusal = f"{name} is set in the environment, and is not supported by Northbound yet"
    assert refused.serve("m", environ={name: asking}) == refusal
    assert refused.serve("--engine", "mock", environ={name: asking}) == refusal
    assert refused.frontend({"model_tag": "m"}, environ={name: asking}) == refusal
    assert serve("m", environ={name: asking_for_nothing}) == serve("m")
