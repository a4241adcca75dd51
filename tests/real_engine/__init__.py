import pytest

pytest.register_assert_rewrite(
    "tests.real_engine.answers",
    "tests.real_engine.checks",
    "tests.real_engine.logprob_checks",
    "tests.real_engine.openai_checks",
    "tests.real_engine.parity",
)
