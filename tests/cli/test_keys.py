"""Values given key by key, as vLLM's own parser takes them: expected is what it made of the same words."""

from typing import Any

import pytest

from tests.cli.commands import Refusals, frontend, serve

FLAG = "--override-generation-config"

AS_VLLM: list[tuple[list[str], dict[str, Any]]] = [
    ([f"{FLAG}.top_k", "5"], {"top_k": 5}),
    (["--override_generation_config.top_k=5"], {"top_k": 5}),
    ([f"{FLAG}.top_k", "-1"], {"top_k": -1}),
    ([f"{FLAG}.a", "--port"], {"a": "--port"}),
    ([f"{FLAG}.a_b-c_d", "1"], {"a_b-c_d": 1}),
    ([f"{FLAG}.", "1"], {"": 1}),
    # what a value reads as
    ([f"{FLAG}.a", "1k"], {"a": 1000}),
    ([f"{FLAG}.a", "1.5k"], {"a": 1500}),
    ([f"{FLAG}.a", "1.5K"], {"a": "1.5K"}),
    ([f"{FLAG}.a", " 8K "], {"a": 8192}),
    ([f"{FLAG}.a", "1_000"], {"a": 1000}),
    ([f"{FLAG}.a", '"quoted"'], {"a": "quoted"}),
    ([f"{FLAG}.a", ""], {"a": ""}),
    ([f"{FLAG}.a="], {"a": ""}),
    ([f"{FLAG}.a", "null"], {"a": None}),
    ([f"{FLAG}.a", "None"], {"a": "None"}),
    ([f"{FLAG}.a", "true"], {"a": True}),
    ([f"{FLAG}.a", "True"], {"a": "True"}),
    ([f"{FLAG}.a", "auto"], {"a": "auto"}),
    ([f"{FLAG}.a=b=c"], {"a": "b=c"}),
    # how they add up
    ([f"{FLAG}.a.b.c", "x", f"{FLAG}.a.b.d=true"], {"a": {"b": {"c": "x", "d": True}}}),
    ([f"{FLAG}.a", "5", f"{FLAG}.a", "6"], {"a": 6}),
    ([f"{FLAG}.a", "1", f"{FLAG}.a.b", "6"], {"a": {"b": 6}}),
    ([f"{FLAG}.a.b", "1", f"{FLAG}.a", "6"], {"a": 6}),
    ([f'{FLAG}.a={{"b": 1}}', f"{FLAG}.a.c=2"], {"a": {"b": 1, "c": 2}}),
    ([f"{FLAG}.a.c=2", f'{FLAG}.a={{"b": 1}}'], {"a": {"b": 1, "c": 2}}),
    # elements of a list
    ([f"{FLAG}.a+", "x,y", f"{FLAG}.a+=z"], {"a": ["x", "y", "z"]}),
    ([f"{FLAG}.a+", "1"], {"a": ["1"]}),
    ([f"{FLAG}.a=[1]", f"{FLAG}.a+=2"], {"a": [1, "2"]}),
    # beside the whole
    ([FLAG, '{"a": 1, "top_k": 3}', f"{FLAG}.top_k", "5"], {"top_k": 5}),
    ([f"{FLAG}.top_k", "5", FLAG, '{"a": 1}'], {"top_k": 5}),
]


@pytest.mark.parametrize(("words", "value"), AS_VLLM)
def test_as_vllm_reads_them(words: list[str], value: dict[str, Any]) -> None:
    assert serve("m", *words).model.override_generation_config == value
    assert serve(*words, "--model", "m").model.override_generation_config == value


def test_the_engine_is_given_the_whole() -> None:
    settings = serve("m", f"{FLAG}.top_k", "5", "--dtype", "half", f"{FLAG}.a.b", "x")
    assert settings.engine_args == (FLAG, '{"top_k":5,"a":{"b":"x"}}', "--dtype", "half")


def test_keys_of_the_engine_s_own_flags_go_to_it_as_they_came() -> None:
    words = ["--hf-overrides.a", "1", "--compilation_config.pass_config.x=true", "-cc.mode", "3", "--hf-overrides.b+=c"]
    assert serve("m", *words).engine_args == tuple(words)


def test_variables_of_templates() -> None:
    flag = "--default-chat-template-kwargs"
    settings = serve("m", f"{flag}.enable_thinking=false", f"{flag}.x", "a=b")
    assert settings.model.default_chat_template_kwargs == {"enable_thinking": False, "x": "a=b"}
    assert settings.engine_args == ()


def test_keys_in_json() -> None:
    given = {"model_tag": "m", "override-generation-config.a.b": 1, "override_generation_config.a.c": 2}
    assert frontend(given).model.override_generation_config == {"a": {"b": 1, "c": 2}}
    given |= {"override_generation_config": {"d": 3}}
    assert frontend(given).model.override_generation_config == {"a": {"b": 1, "c": 2}}


def test_what_has_no_value_or_no_keys(refused: Refusals) -> None:
    assert refused.serve("m", f"{FLAG}.top_k") == f"{FLAG}.top_k: expected one argument"
    assert refused.serve("m", "--port.x", "1") == "--port.x: --port has no keys"
    assert refused.serve("m", "--return_tokens_as_token_ids.x=1") == (
        "--return-tokens-as-token-ids.x: --return-tokens-as-token-ids has no keys"
    )
