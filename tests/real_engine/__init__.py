import pytest

pytest.register_assert_rewrite(
    "tests.real_engine.answers",
    "tests.real_engine.checks",
    "tests.real_engine.client_checks",
    "tests.real_engine.distillation_checks",
    "tests.real_engine.lm_eval_runs",
    "tests.real_engine.logprob_checks",
    "tests.real_engine.openai_checks",
    "tests.real_engine.openai_failure_checks",
    "tests.real_engine.parity",
)
