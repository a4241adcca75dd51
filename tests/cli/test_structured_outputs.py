"""Which grammar library the engine is set to is known on both sides."""

import pytest

from tests.cli.commands import Refusals, frontend, serve

CONFIG = "--structured-outputs-config"


def test_the_engine_chooses_per_request_unless_it_is_set() -> None:
    assert serve("m").handshake.structured_outputs_backend == "auto"
    assert frontend({"model_tag": "m"}).handshake.structured_outputs_backend == "auto"
    assert serve("m", CONFIG, '{"disable_any_whitespace": true}').handshake.structured_outputs_backend == "auto"


@pytest.mark.parametrize("backend", ["auto", "xgrammar", "guidance", "outlines", "lm-format-enforcer"])
def test_what_it_is_set_to(backend: str) -> None:
    whole = serve("m", CONFIG, f'{{"backend": "{backend}"}}')
    one_key = serve("m", f"{CONFIG}.backend", backend)
    handed_over = frontend({"model_tag": "m", "structured_outputs_config": {"backend": backend}})
    assert [settings.handshake.structured_outputs_backend for settings in (whole, one_key, handed_over)] == [
        backend
    ] * 3


def test_a_key_by_itself_wins() -> None:
    settings = serve("m", f"{CONFIG}.backend", "outlines", CONFIG, '{"backend": "guidance"}')
    assert settings.handshake.structured_outputs_backend == "outlines"


def test_an_engine_started_elsewhere_is_set_too() -> None:
    settings = serve("m", "--data-parallel-size-local", "0", CONFIG, '{"backend": "guidance"}')
    assert settings.handshake.structured_outputs_backend == "guidance"


def test_what_nobody_knows_is_refused(refused: Refusals) -> None:
    assert refused.serve("m", CONFIG, '{"backend": "x"}') == f"{CONFIG} is not supported by Northbound yet"
    assert refused.serve("m", f"{CONFIG}.backend", "x") == f"{CONFIG} is not supported by Northbound yet"
    said = refused.frontend({"model_tag": "m", "structured_outputs_config": {"backend": "x"}})
    assert said == "--args-json: structured_outputs_config is not supported by Northbound yet"
