"""Adapters on the command line, in JSON and in the environment."""

from typing import Any

import pytest

from adapters.inbound.cli.settings import LoraModule
from tests.cli.commands import Refusals, frontend, serve

UPDATING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
A, B = LoraModule(name="a", path="/x"), LoraModule(name="b", path="org/b=1,2", base_model_name="m")
A_JSON = '{"name": "a", "path": "/x"}'
B_JSON = '{"name": "b", "path": "org/b=1,2", "base_model_name": "m"}'


def modules(*words: str) -> tuple[LoraModule, ...]:
    return serve("m", "--enable-lora", "--lora-modules", *words).lora.lora_modules


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["a=/x"], (A,)),
        ([A_JSON, B_JSON], (A, B)),
        (["a=/x", B_JSON], (A, B)),
        ([f"[{A_JSON}, {B_JSON}]"], (A, B)),
        (["a=/x", f"[{B_JSON}]"], (A, B)),
        (["c=/y,z=1"], (LoraModule(name="c", path="/y,z=1"),)),
        (
            ['{"name": "c", "path": "/y", "is_3d_lora_weight": true}'],
            (LoraModule(name="c", path="/y", is_3d_lora_weight=True),),
        ),
        (["", "a=/x", "None"], (A,)),
        (["[]"], ()),
    ],
)
def test_modules_are_named_in_words_or_in_json(words: list[str], named: tuple[LoraModule, ...]) -> None:
    assert modules(*words) == named


def test_one_module_may_be_named_key_by_key() -> None:
    settings = serve("m", "--enable-lora", "--lora-modules.name", "a", "--lora_modules.path=/x")
    assert settings.lora.lora_modules == (A,)


def test_the_last_time_modules_are_named_counts() -> None:
    assert modules("b=/y", "--lora-modules", "a=/x") == (A,)


@pytest.mark.parametrize(
    "value", [[A_JSON, B_JSON], ["a=/x", {"name": "b", "path": "org/b=1,2", "base_model_name": "m"}]]
)
def test_a_launcher_hands_over_objects_or_words(value: list[Any]) -> None:
    assert frontend({"model_tag": "m", "lora_modules": value}).lora.lora_modules == (A, B)


@pytest.mark.parametrize(
    "word",
    [
        *("a", "=/x", "a=", "{", '{"name": "a"}', '{"name": "a", "path": 3}', '{"name": "a", "path": ""}', "[1]"),
        '{"name": "a", "path": "/x", "rank": 8}',
    ],
)
def test_what_names_no_module_is_refused(refused: Refusals, word: str) -> None:
    said = refused.serve("m", "--enable-lora", "--lora-modules", word)
    assert said.startswith("--lora-modules: expected NAME=PATH, or a JSON object with name, path ")
    assert refused.frontend({"model_tag": "m", "lora_modules": [word]}).startswith(
        "--args-json: lora_modules: expected "
    )


def test_an_engine_started_here_is_told_to_take_adapters_and_not_of_which() -> None:
    settings = serve("m", "--enable-lora", "--lora-modules", "a=/x", "--max-lora-rank", "8")
    assert settings.engine_args == ("--enable-lora", "--max-lora-rank", "8")


def test_every_other_flag_about_adapters_goes_to_the_engine() -> None:
    words = ["--max-loras", "4", "--max-cpu-loras", "8", "--lora-dtype", "bfloat16", "--fully-sharded-loras"]
    words += ["--lora-target-modules", "q_proj", "v_proj", "--specialize-active-lora", "--max-lora-cls-labels", "2"]
    words += ["--enable-mixed-moe-lora-format", "--enable-moe-shared-loras"]
    assert serve("m", *words).engine_args == tuple(words)


def test_modules_need_an_engine_that_takes_them(refused: Refusals) -> None:
    assert refused.serve("m", "--lora-modules", "a=/x") == "--lora-modules needs --enable-lora"
    assert refused.serve("m", "--no-enable-lora", "--lora-modules=a=/x") == "--lora-modules needs --enable-lora"
    told_directly = serve("m", "--lora-modules", "a=/x", "--", "--enable-lora")
    assert told_directly.lora.lora_modules == (A,)
    assert told_directly.engine_args == ("--enable-lora",)


@pytest.mark.parametrize("words", [["--engine", "mock"], ["m", "--data-parallel-size-local", "0"]])
def test_an_engine_that_is_not_started_here_says_itself_whether_it_takes_them(words: list[str]) -> None:
    assert serve(*words, "--lora-modules", "a=/x").lora.lora_modules == (A,)


def test_modules_are_not_for_the_engine(refused: Refusals) -> None:
    assert (
        refused.serve("m", "--", "--lora-modules", "a=/x") == "--lora-modules is not for the engine: give it before --"
    )


@pytest.mark.parametrize("value", ["1", "true", "TRUE", " True "])
def test_clients_may_update_adapters_if_the_environment_says_so(value: str) -> None:
    assert serve("m", environ={UPDATING: value}).lora.allows_updating
    assert frontend({"model_tag": "m"}, environ={UPDATING: value}).lora.allows_updating


@pytest.mark.parametrize("value", ["", "0", "false", "yes", "2"])
def test_and_only_then(value: str) -> None:
    assert not serve("m", environ={UPDATING: value}).lora.allows_updating
    assert not serve("m").lora.allows_updating
    assert not frontend({"model_tag": "m"}, environ={UPDATING: value}).lora.allows_updating
