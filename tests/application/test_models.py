"""Which models a server answers for."""

from pathlib import Path

import pytest

from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.options import ServerOptions
from application.services.lora import LoraAdapters
from application.services.models import ModelCard, ModelNotFound, ServedModel, ServedModels
from tests.fakes.lora import LoadingEngine

NAMES = ["first", "second"]
MODELS = ServedModels(
    NAMES,
    "models/m",
    1_700_000_000,
    ScriptedEngine(steps(104), max_model_len=100),
    ServerOptions(),
    LoraAdapters(LoadingEngine(), NAMES),
)


@pytest.mark.parametrize("requested", ["first", "second", "", None])
def test_an_answer_carries_the_first_name(requested: str | None) -> None:
    assert MODELS.resolve(requested) == ServedModel("first")


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(ModelNotFound, match=r"`third`.*first, second") as refused:
        MODELS.resolve("third")

    assert refused.value.param == "model"


def test_there_is_a_card_for_each_name() -> None:
    assert list(MODELS.cards()) == [
        ModelCard("first", "models/m", 1_700_000_000, 100),
        ModelCard("second", "models/m", 1_700_000_000, 100),
    ]


async def test_adapters_are_listed_and_answer_in_their_own_names(tmp_path: Path) -> None:
    engine = LoadingEngine()
    adapters = LoraAdapters(engine, NAMES)
    models = ServedModels(NAMES, "models/m", 1_700_000_000, engine, ServerOptions(), adapters)
    await adapters.load("a", str(tmp_path))
    await adapters.load("b", str(tmp_path), base_model_name="second")

    assert models.resolve("b") == ServedModel("b", adapters.get("b"))
    assert list(models.cards())[2:] == [
        ModelCard("a", str(tmp_path), 1_700_000_000, parent="first"),
        ModelCard("b", str(tmp_path), 1_700_000_000, parent="second"),
    ]
    with pytest.raises(ModelNotFound, match="first, second, a, b"):
        models.resolve("c")
