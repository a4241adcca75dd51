"""Northbound starts an engine that has a LoRA adapter from its start. The checks of every way in hold of the model, and
by the adapter's name; clients may load and unload adapters. The flag is off, so that requests ask for placeholders.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from tests.real_engine.answers import Asker, Json
from tests.real_engine.checks import COUNTING, Serves, answered, both_ways, stops
from tests.real_engine.questions import CHAT_PETS_BY_FIVE, ECHOED_HELLO, Question, completion
from tests.real_engine.servers import MODEL, Home, Server, managed, running

ADAPTER, OTHER = "random", "other"
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
QUESTIONS = [
    ECHOED_HELLO,
    CHAT_PETS_BY_FIVE,
    COUNTING,
    completion("story", "Once upon a time", logprobs=0, max_tokens=16),
]


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Server]:
    modules = ("--enable-lora", "--lora-modules", f"{ADAPTER}={home.adapter}")
    with running(managed(home, *modules, env={"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"})) as server:
        yield server


@pytest.fixture(scope="module")
def by_name(server: Server) -> Iterator[Asker]:
    """Asks the adapter."""
    asker = Asker(server.url, model=ADAPTER)
    yield asker
    asker.close()


class TestModel(Serves):
    to_show_ids: ClassVar[Json] = {"return_tokens_as_token_ids": True}
    models: ClassVar[list[str]] = [MODEL, ADAPTER]


class TestAdapter(Serves):
    to_show_ids: ClassVar[Json] = {"return_tokens_as_token_ids": True}
    models: ClassVar[list[str]] = [MODEL, ADAPTER]

    @pytest.fixture
    def asker(self, by_name: Asker) -> Asker:
        return by_name

    def test_its_card_names_its_model(self, asker: Asker, home: Home) -> None:
        card = asker.get("/v1/models")["data"][1]
        assert (card["parent"], card["root"]) == (MODEL, str(home.adapter))

    @both_ways
    @pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
    def test_it_answers_in_its_own_name(self, asker: Asker, question: Question, streamed: bool) -> None:
        answers = asker.ask_streamed(question) if streamed else [asker.ask(question)]
        assert {answer["model"] for answer in answers} == {ADAPTER}


class TestUpdates:
    def test_the_adapter_answers_otherwise_than_its_model(self, asker: Asker, by_name: Asker) -> None:
        pairs = [[answered(each, question, False) for each in (asker, by_name)] for question in QUESTIONS]
        assert any(of_model.text != of_adapter.text for of_model, of_adapter in pairs)
        assert all(of_model.logprobs != of_adapter.logprobs for of_model, of_adapter in pairs)

    def test_another_comes_and_goes(self, asker: Asker, by_name: Asker, home: Home, tmp_path: Path) -> None:
        """There is room for one in the engine, so that the first is forgotten meanwhile, and read again."""
        before = answered(by_name, COUNTING, False)
        shutil.copytree(home.adapter, tmp_path / "other")

        assert asker.post(LOAD, {"lora_name": OTHER, "lora_path": f"{tmp_path}/other"}).status_code == 200
        assert [model["id"] for model in asker.get("/v1/models")["data"]] == [MODEL, ADAPTER, OTHER]
        assert answered(asker, COUNTING.but(model=OTHER), False) == before

        again = {"lora_name": OTHER, "lora_path": str(home.adapter), "load_inplace": True}
        assert asker.post(LOAD, again).status_code == 200
        shutil.rmtree(tmp_path / "other")
        assert answered(asker, COUNTING.but(model=OTHER), False) == before
        assert answered(by_name, COUNTING, False) == before

        assert asker.post(UNLOAD, {"lora_name": OTHER}).status_code == 200
        assert asker.post(COUNTING.path, {**COUNTING.body, "model": OTHER}).status_code == 404

    @pytest.mark.parametrize(
        ("config", "status"), [(None, 404), ({"r": 64}, 500)], ids=["nothing there", "more ranks than the engine takes"]
    )
    def test_what_the_engine_does_not_load(
        self, asker: Asker, by_name: Asker, home: Home, tmp_path: Path, config: Json | None, status: int
    ) -> None:
        if config is not None:
            shutil.copytree(home.adapter, tmp_path / "bad")
            own = json.loads((tmp_path / "bad/adapter_config.json").read_text())
            (tmp_path / "bad/adapter_config.json").write_text(json.dumps({**own, **config}))
        reply = asker.post(LOAD, {"lora_name": "bad", "lora_path": f"{tmp_path}/bad"})
        assert reply.status_code == status, reply.text
        error = reply.json()["error"]
        assert error["param"] == ("lora_path" if status == 404 else None)
        assert len(error["message"].splitlines()) == 1
        assert [model["id"] for model in asker.get("/v1/models")["data"]] == [MODEL, ADAPTER]
        answered(by_name, COUNTING, False)

    def test_stops_by_sigterm(self, server: Server) -> None:
        stops(server)
