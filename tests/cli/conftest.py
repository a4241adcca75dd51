import pytest

from tests.cli.commands import Refusals


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refusals:
    return Refusals(capsys)
