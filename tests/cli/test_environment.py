"""Variables that stand in for flags."""

import sys

import pytest

from tests.cli.commands import Refusals, frontend, serve

ENVIRON = {
    "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "7",
    "VLLM_HTTP_MAX_REQUEST_BODY_SIZE": "1024",
    "VLLM_ENGINE_READY_TIMEOUT_S": "30",
    "VLLM_LOGGING_LEVEL": "warning",
    "NORTHBOUND_ALLOW_ENGINE_VERSION": "0.34.0,0.35.0",
    "NORTHBOUND_PYTHON": "/opt/vllm/bin/python",
}


def test_variables_stand_in_for_flags() -> None:
    served = serve("m", environ=ENVIRON)
    supervised = frontend({"model_tag": "m"}, environ=ENVIRON)
    for settings in (served, supervised):
        assert settings.http.http_timeout_keep_alive == 7
        assert settings.http.http_max_request_body_size == 1024
        assert settings.http.log_level == "WARNING"
        assert settings.handshake.engine_ready_timeout_s == 30
        assert settings.handshake.allow_engine_version == ("0.34.0", "0.35.0")
    assert served.python == "/opt/vllm/bin/python"
    assert served.engine_args == ()


def test_flags_and_keys_win_over_variables() -> None:
    served = serve("m", "--http-timeout-keep-alive", "9", "--python", "/p", environ=ENVIRON)
    assert served.http.http_timeout_keep_alive == 9
    assert served.python == "/p"
    supervised = frontend({"model_tag": "m", "http_timeout_keep_alive": 9}, environ=ENVIRON)
    assert supervised.http.http_timeout_keep_alive == 9


def test_an_empty_variable_is_none() -> None:
    assert serve("m", environ=dict.fromkeys(ENVIRON, "")) == serve("m")


def test_a_variable_may_be_of_no_use() -> None:
    assert serve("--engine=mock", environ={"NORTHBOUND_PYTHON": "/p"}).engine == "mock"


def test_the_interpreter_is_our_own_by_default() -> None:
    assert serve("m").python == sys.executable


@pytest.mark.parametrize(
    ("name", "value"),
    [("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "soon"), ("VLLM_ENGINE_READY_TIMEOUT_S", "-1"), ("VLLM_LOGGING_LEVEL", "loud")],
)
def test_a_bad_value_is_said_with_its_variable(refused: Refusals, name: str, value: str) -> None:
    said = refused.serve("m", environ={name: value})
    assert said.startswith(f"{name}: expected ")
    assert said.endswith(f", not {value!r}")
