"""What `northbound serve` keeps, what it passes on, and what does not go together."""

import sys

import pytest

from adapters.inbound.cli.settings import HandshakeSettings, HttpSettings, ModelSettings, ServeSettings
from tests.cli.commands import Refusals, serve


def test_a_model_is_served_by_vllm() -> None:
    assert serve("org/model") == ServeSettings(
        http=HttpSettings(),
        model=ModelSettings(model="org/model", served_model_names=("org/model",)),
        handshake=HandshakeSettings(),
        engine="vllm",
        python=sys.executable,
    )
    assert serve("org/model").engine_argv() == ("org/model",)


def test_the_mock_engine_needs_no_model() -> None:
    settings = serve("--engine", "mock", "--mock-step-ms", "2.5")
    assert settings.engine == "mock"
    assert settings.mock_step_ms == 2.5
    assert settings.model == ModelSettings(served_model_names=("mock",))
    assert settings.engine_argv() == ()


def test_the_mock_engine_goes_by_the_model_s_name() -> None:
    assert serve("org/model", "--engine=mock").model.served_model_names == ("org/model",)
    assert serve("--engine=mock", "--served-model-name", "a", "b").model.served_model_names == ("a", "b")


@pytest.mark.parametrize("words", [["m", "--port", "1"], ["--port", "1", "m"], ["--port=1", "--model=m"]])
def test_model_comes_first_or_after_known_flags_or_by_name(words: list[str]) -> None:
    settings = serve(*words)
    assert settings.model.model == "m"
    assert settings.http.port == 1
    assert settings.engine_argv() == ("m",)


@pytest.mark.parametrize("words", [[], ["--engine", "auto"], ["--engine", "llamacpp"], ["--port", "1"]])
def test_without_a_model_there_is_one_for_llama_cpp(words: list[str]) -> None:
    settings = serve(*words)
    assert settings.engine == "llamacpp"
    assert settings.model.model is None
    assert settings.model.served_model_names == ("SmolLM2-135M-Instruct",)


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        (["folder/m.gguf"], "llamacpp"),
        (["M.GGUF", "--engine", "auto"], "llamacpp"),
        (["m.gguf", "--engine", "vllm"], "vllm"),
        (["m", "--engine", "llamacpp"], "llamacpp"),
        (["m.gguf", "--engine", "mock"], "mock"),
        (["m.gguf/m"], "vllm"),
    ],
)
def test_llama_cpp_serves_files_of_its_own(words: list[str], engine: str) -> None:
    settings = serve(*words)
    assert settings.engine == engine
    assert settings.model.model == words[0]
    assert settings.model.served_model_names == (words[0],)


def test_an_engine_is_told_how_many_requests_it_works_on() -> None:
    assert serve("m.gguf", "--max-num-seqs", "8").max_num_seqs == 8
    assert serve("m", "--max-num-seqs", "8").engine_args == ("--max-num-seqs", "8")


@pytest.mark.parametrize("words", [["--engine", "vllm"], ["--enforce-eager", "m"], ["--", "m"]])
def test_no_model_is_an_error_that_names_the_mock_engine(refused: Refusals, words: list[str]) -> None:
    said = refused.serve(*words)
    assert said.startswith("no MODEL")
    assert "--engine mock" in said


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--dtype", "half"], "--dtype"),
        (["--dtype=half", "m"], "--dtype"),
        (["--engine", "auto", "-tp", "2"], "-tp"),
        (["--", "--dtype", "half"], "--dtype"),
    ],
)
def test_an_engine_s_flag_without_a_model_is_named(refused: Refusals, words: list[str], name: str) -> None:
    said = refused.serve(*words)
    assert said.startswith(f"no MODEL for an engine that takes {name}: it comes first, as in `northbound serve MODEL ")
    assert "did you mean" not in said


@pytest.mark.parametrize(
    "words", [["--revision", "r"], ["--data-parallel-size", "2"], ["--enable-lora"], ["--python", "/p"]]
)
def test_a_flag_that_needs_a_model_says_where_it_goes(refused: Refusals, words: list[str]) -> None:
    said = refused.serve(*words)
    assert said == f"{words[0]} is of no use without a MODEL, which comes first, as in `northbound serve MODEL`"


@pytest.mark.parametrize("words", [[], ["m", "--engine", "mock"], ["m.gguf"], ["m", "-dpl", "0"]])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--max-logprobz=3", "--max-logprobs"),
        ("--prot", "--port"),
        ("--chat_tempalte", "--chat-template"),
        ("--max-num-batched-tokens", ""),
        ("-x", ""),
    ],
)
def test_a_misspelled_flag_that_no_engine_reads_is_named(
    refused: Refusals, words: list[str], typed: str, meant: str
) -> None:
    said = refused.serve(*words, typed)
    assert said.endswith(f"; did you mean {meant}?") if meant else "did you mean" not in said


def test_rendering_names_what_it_cannot_take(refused: Refusals) -> None:
    there_is_none = "there is no engine here to give it to"
    assert refused.parse(["render", "m", "--dtype", "half"]) == f"--dtype: {there_is_none}"
    said = refused.parse(["render", "m", "--chat-tempalte=t"])
    assert said == f"--chat-tempalte: {there_is_none}; did you mean --chat-template?"


def test_two_models_are_an_error(refused: Refusals) -> None:
    assert refused.serve("m", "--model", "n") == "--model: MODEL is already 'm'"
    assert refused.serve("m", "--port", "1", "n") == "unexpected argument 'n'"
    assert refused.serve("m", "--return-tokens-as-token-ids", "true") == "unexpected argument 'true'"
    assert serve("m", "--model", "m") == serve("m")


def test_unknown_flags_go_to_the_engine_untouched_and_in_order() -> None:
    settings = serve(
        *["m", "--dtype", "bfloat16", "--port", "1", "--enforce-eager", "-tp", "2", "--cudagraph-capture-sizes"],
        *["1", "2", "--max_num_batched_tokens=4", "--host", "h", "-O3", "--seed", "-1", "--hf-overrides.a.b", "1"],
        *["--kv-transfer-config", '{"kv_connector": "x"}', "--no-enable-prefix-caching"],
    )
    assert settings.http == HttpSettings(host="h", port=1)
    assert settings.engine_args == (
        *["--dtype", "bfloat16", "--enforce-eager", "-tp", "2", "--cudagraph-capture-sizes"],
        *["1", "2", "--max_num_batched_tokens=4", "-O3", "--seed", "-1", "--hf-overrides.a.b", "1"],
        *["--kv-transfer-config", '{"kv_connector": "x"}', "--no-enable-prefix-caching"],
    )


def test_everything_after_two_dashes_goes_to_the_engine_last() -> None:
    settings = serve("m", "--dtype", "half", "--", "--max-model-len", "8k", "anything", "--x_y=1")
    assert settings.engine_argv() == (*["m", "--dtype", "half", "--max-model-len", "8k", "anything", "--x_y=1"],)
    assert settings.model.max_model_len is None


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--api-key", "s"], "--api-key is not for the engine: give it before --"),
        (["--api-ke", "s"], "--api-ke: not a flag; did you mean --api-key?"),
        (["--root-path=/v"], "--root-path is not for the engine: give it before --"),
        (["--port", "1"], "--port is not for the engine: give it before --"),
        (["--return-tokens-as-token-ids"], "--return-tokens-as-token-ids is not for the engine: give it before --"),
    ],
)
def test_a_frontend_s_flag_is_not_lost_on_the_engine(refused: Refusals, words: list[str], problem: str) -> None:
    assert refused.serve("m", "--", *words) == problem


def test_the_beginning_of_several_flags_names_the_shortest(refused: Refusals) -> None:
    said = refused.serve("m", "--data-par", "2")
    assert said.startswith("--data-par: not a flag; did you mean --data-parallel-rank or --data-parallel-size or --")
    assert said.count(" or ") == 3


def test_flags_for_both_sides_reach_both() -> None:
    words = {
        "--shutdown-timeout": "3",
        "--log-level": "DEBUG",
        "--tokenizer": "t",
        "--revision": "r",
        "--tokenizer-revision": "tr",
        "--generation-config": "vllm",
        "--max-model-len": "2048",
        "--max-logprobs": "-1",
        "--stream-interval": "4",
        "--override-generation-config": '{"top_k":5}',
    }
    settings = serve("m", *(word for pair in words.items() for word in pair), "--trust-remote-code=true")
    assert settings.http == HttpSettings(shutdown_timeout=3, log_level="DEBUG")
    assert settings.model == ModelSettings(
        model="m",
        served_model_names=("m",),
        tokenizer="t",
        revision="r",
        tokenizer_revision="tr",
        trust_remote_code=True,
        generation_config="vllm",
        max_model_len=2048,
        max_logprobs=-1,
        stream_interval=4,
        override_generation_config={"top_k": 5},
    )
    model, *rest = settings.engine_argv()
    assert model == "m"
    rest.remove("--trust-remote-code")
    assert dict(zip(rest[::2], rest[1::2], strict=True)) == words


@pytest.mark.parametrize(
    ("words", "engine_args"),
    [
        (["--max-model-len", "8k"], ("--max-model-len", "8000")),
        (["--max_model_len=8K"], ("--max-model-len", "8192")),
        (["--max-model-len", "auto"], ("--max-model-len", "-1")),
        (["--log-level", "debug"], ("--log-level", "DEBUG")),
        (["--trust-remote-code"], ("--trust-remote-code",)),
        (["--no-trust-remote-code"], ()),
        (["--revision", ""], ()),
    ],
)
def test_the_engine_is_given_what_it_reads(words: list[str], engine_args: tuple[str, ...]) -> None:
    assert serve("m", *words).engine_args == engine_args


def test_flags_of_the_frontend_alone_do_not_reach_the_engine() -> None:
    words = ["--host", "h", "--port", "1", "--uds", "/u", "--served-model-name", "a", "b"]
    words += ["--return-tokens-as-token-ids", "--root-path", "/v", "--enable-force-include-usage"]
    words += ["--http-timeout-keep-alive", "1", "--http-max-request-body-size", "1", "--engine-ready-timeout-secs", "1"]
    words += ["--allow-engine-version", "1", "--engine", "vllm", "--python", "/p", "--data-parallel-address", "a"]
    words += ["--data-parallel-rpc-port", "1", "--data-parallel-size", "2", "--data-parallel-size-local", "1"]
    assert serve("m", *words).engine_argv() == ("m",)


@pytest.mark.parametrize(
    "words",
    [
        "--data-parallel-address=10.0.0.1 --data-parallel-rpc-port=5 --data-parallel-size=2 -dpl 1",
        "--handshake-host 10.0.0.1 --handshake-port 5 --data_parallel_size=2 --data_parallel_size_local=1",
        "-dpa 10.0.0.1 -dpp 5 -dp 2 -dpl 1",
        "-dpa=10.0.0.1 -dpp=5 -dp=2 -dpl=1",
    ],
)
def test_where_engines_report_has_several_spellings(words: str) -> None:
    settings = serve("m", *words.split())
    assert settings.data_parallel_address == "10.0.0.1"
    assert settings.data_parallel_rpc_port == 5
    assert settings.data_parallel_size == 2
    assert settings.data_parallel_size_local == 1
    assert settings.starts_engine


def test_engines_may_be_started_elsewhere() -> None:
    settings = serve("m", "--data-parallel-size-local", "0", "--max-model-len", "2048")
    assert not settings.starts_engine
    assert settings.engine_argv() == ()
    assert settings.model.max_model_len == 2048


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("--dtype half", "--dtype"),
        ("--dtype=half --enforce-eager", "--dtype"),
        ("-tp 2", "-tp"),
        ("-- --dtype half", "--dtype"),
    ],
)
@pytest.mark.parametrize("mode", ["--engine mock", "--data-parallel-size-local 0"])
def test_an_engine_s_flag_needs_an_engine_to_give_it_to(refused: Refusals, words: str, name: str, mode: str) -> None:
    said = refused.serve("m", *mode.split(), *words.split())
    assert said == f"{name} is not a flag of Northbound's, and {mode} starts no engine to give it to"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("m --mock-step-ms 1", "--mock-step-ms needs --engine mock"),
        ("--engine mock --python /p", "--python is of no use with --engine mock"),
        ("m -dpl 0 --python /p", "--python is of no use with --data-parallel-size-local 0"),
        ("--engine mock -dp 2", "--data-parallel-size is of no use with --engine mock"),
        ("--engine mock -dpl 0", "--data-parallel-size-local is of no use with --engine mock"),
        ("--engine mock --chat-template t", "--chat-template is of no use without a MODEL"),
        ("--engine mock --trust-request-chat-template", "--trust-request-chat-template is of no use without a MODEL"),
        ("--engine mock --max-num-seqs 2", "--max-num-seqs is of no use with --engine mock"),
        ("--engine mock --revision r", "--revision is of no use without a MODEL"),
        ("m.gguf --revision r", "--revision is of no use with a GGUF file"),
        (
            'm.gguf --override-generation-config {"top_k":1}',
            "--override-generation-config is of no use with a GGUF file",
        ),
        ("m.gguf --enable-lora", "--enable-lora is of no use with --engine llamacpp"),
        ("m.gguf --lora-modules a=b", "--lora-modules is of no use with --engine llamacpp"),
        ("m.gguf -dp 2", "--data-parallel-size is of no use with --engine llamacpp"),
        ("m.gguf --python /p", "--python is of no use with --engine llamacpp"),
        (
            "m.gguf --dtype half",
            "--dtype is not a flag of Northbound's, and --engine llamacpp starts no engine to give it to",
        ),
        ("m -dpl 2", "--data-parallel-size-local: expected at most 1, the --data-parallel-size, not 2"),
    ],
)
def test_flags_that_do_not_go_together(refused: Refusals, words: str, problem: str) -> None:
    assert refused.serve(*words.split()) == problem


def test_defaults_given_explicitly_go_with_anything() -> None:
    assert serve("m", "--mock-step-ms", "0") == serve("m")
    settings = serve("--engine=mock", "--data-parallel-size", "1", "--data-parallel-address", "127.0.0.1")
    assert settings == serve("--engine=mock")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--engine", "llama"], "--engine: expected one of auto, vllm, llamacpp, mock, not 'llama'"),
        (["--data-parallel-size", "0"], "--data-parallel-size/-dp: expected an integer from 1 to 65536, not '0'"),
        (["--mock-step-ms", "nan"], "--mock-step-ms: expected a number from 0 to 1e+09, not 'nan'"),
        (["--mock-step-ms", "-1"], "--mock-step-ms: expected a number from 0 to 1e+09, not '-1'"),
    ],
)
def test_bad_values(refused: Refusals, words: list[str], problem: str) -> None:
    assert refused.serve("m", *words) == problem


@pytest.mark.parametrize("word", ["", "None"])
def test_an_empty_value_unsets_a_flag(word: str) -> None:
    words = ["--host", word, "--uds", word, "--tokenizer", word, "--served-model-name", word, "--python", word]
    assert serve("m", *words) == serve("m")


def test_times_of_an_engine_that_tells_none_are_refused(refused: Refusals) -> None:
    said = refused.serve("m", "--enable-per-request-metrics", "--disable-log-stats")
    assert said.startswith("--enable-per-request-metrics is of no use with --disable-log-stats")
    assert serve("m", "--enable-per-request-metrics", "--no-disable-log-stats").model.enable_per_request_metrics
