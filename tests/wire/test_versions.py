"""Which engines are spoken to."""

import pytest

from adapters.outbound.vllm_engine.versions import is_spoken


@pytest.mark.parametrize("version", ["0.32.0", "0.32.0+cpu", "0.33.0", "0.33.1rc2.dev5+g0123abc", "0.33"])
def test_known_releases(version: str) -> None:
    assert is_spoken(version)


@pytest.mark.parametrize("version", ["0.31.9", "0.34.0", "0.320.0", "1.32.0", "10.32.0", "dev", ""])
def test_others(version: str) -> None:
    assert not is_spoken(version)


def test_what_the_operator_allows() -> None:
    assert is_spoken("0.34.1", ["0.34"])
    assert is_spoken("0.34.1", ["0.1", "0.34.1"])
    assert is_spoken("dev", ["dev"])
    assert not is_spoken("0.34.1", ["0.3", "0.34.10", "0.34.2"])
    assert is_spoken("0.32.0", ["0.34"])
