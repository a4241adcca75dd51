"""Loading a model's tokenizer, and reading what its files say of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tokenizers import decoders

from adapters.outbound.hf_tokenizer.loading import load_tokenizer
from adapters.outbound.hf_tokenizer.model_facts import ModelFacts, load_model_facts
from adapters.outbound.hf_tokenizer.model_files import ModelFiles, ModelNotLoadable
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from application.model import ModelDefaults
from tests.fakes import tokenizers
from tests.fakes.tokenizers import write_model_folder

EOS = 2
"""<|im_end|> in the folders of these tests."""


def facts(path: Path, generation_config: str = "auto", **override: Any) -> ModelFacts:
    return load_model_facts(
        str(path),
        generation_config=generation_config,
        override=override,
        eos_token_id=EOS,
        tokenizer_vocab_size=500,
    )


def defaults(path: Path, generation_config: str = "auto", **override: Any) -> ModelDefaults:
    return facts(path, generation_config, **override).defaults


class TestTokenizer:
    def test_it_is_that_of_the_folder(self, tmp_path: Path) -> None:
        pretrained = load_tokenizer(str(write_model_folder(tmp_path)))
        tokenizer = HfTokenizer(pretrained.backend_tokenizer)
        own = HfTokenizer(tokenizers.byte_level_bpe())
        text = "<|im_start|>user\nUn café 🎉<|im_end|>"
        assert tokenizer.encode(text, add_special_tokens=True) == own.encode(text, add_special_tokens=True)
        assert tokenizer.vocab_size == own.vocab_size
        assert pretrained.eos_token_id == EOS

    def test_byte_entries_and_added_tokens_survive_loading(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path, tokenizers.llama_bpe(), eos_token="</s>")
        tokenizer = HfTokenizer(load_tokenizer(str(tmp_path)).backend_tokenizer)
        token_ids = tokenizer.encode("Hello 🎉", add_special_tokens=True)
        assert [tokenizer.piece(token_id).content for token_id in token_ids][-4:] == [
            b"\xf0",
            b"\x9f",
            b"\x8e",
            b"\x89",
        ]
        assert tokenizer.decode(token_ids) == "<s> Hello 🎉"

    @pytest.mark.parametrize("name", ["/nowhere/model", "./nowhere", "~/nowhere", "a/b/c", "", "with space"])
    def test_a_folder_that_is_not_there_is_named(self, name: str) -> None:
        with pytest.raises(ModelNotLoadable, match=f"^There is no folder {name or repr(name)}"):
            load_tokenizer(name)

    def test_a_file_is_no_model(self, tmp_path: Path) -> None:
        (tmp_path / "model.gguf").write_bytes(b"GGUF")
        with pytest.raises(ModelNotLoadable, match=r"model\.gguf is a file"):
            load_tokenizer(str(tmp_path / "model.gguf"))

    def test_a_folder_without_a_fast_tokenizer_is_named(self, tmp_path: Path) -> None:
        (write_model_folder(tmp_path) / "tokenizer.json").unlink()
        with pytest.raises(ModelNotLoadable, match=f"^{tmp_path} has no fast tokenizer"):
            load_tokenizer(str(tmp_path))

    def test_files_that_are_broken_are_one_line(self, tmp_path: Path) -> None:
        (write_model_folder(tmp_path) / "tokenizer.json").write_text("{")
        with pytest.raises(ModelNotLoadable, match=str(tmp_path)) as caught:
            load_tokenizer(str(tmp_path))
        assert "\n" not in str(caught.value)

    def test_code_of_a_models_own_is_not_run_unasked(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path)
        settings = {"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]}}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
        (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
        with pytest.raises(ModelNotLoadable, match="--trust-remote-code"):
            load_tokenizer(str(tmp_path))
        assert not (tmp_path / "ran").exists()

    def test_a_decoder_that_is_not_known_is_refused(self, tmp_path: Path) -> None:
        library = tokenizers.word_level()
        library.decoder = decoders.CTC()
        write_model_folder(tmp_path, library, eos_token="[SEP]")
        with pytest.raises(ModelNotLoadable, match=rf"^The tokenizer of {tmp_path} .*CTC"):
            load_tokenizer(str(tmp_path))


CHECK_IN_A_FRESH_PROCESS = """
import sys
from adapters.outbound.hf_tokenizer.loading import load_tokenizer
from adapters.outbound.hf_tokenizer.model_files import ModelNotLoadable
assert "transformers" not in sys.modules, "imported before it is needed"
try:
    load_tokenizer(sys.argv[1])
except ModelNotLoadable as error:
    print(error)
assert sys.modules.get("torch") is None, "torch"
assert not [name for name in sys.modules if name.startswith("torch.")], "torch"
"""


def run_in_a_fresh_process(name: str, path: Path) -> subprocess.CompletedProcess[str]:
    """With a `torch` that can be found but not imported, and no way to the hub."""
    (path / "torch.py").write_text("raise AssertionError('torch was imported')")
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(path), str(Path.cwd())]),
    }
    command = [sys.executable, "-c", CHECK_IN_A_FRESH_PROCESS, name]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


class TestFreshProcess:
    def test_loading_imports_no_torch_and_says_nothing(self, tmp_path: Path) -> None:
        done = run_in_a_fresh_process(str(write_model_folder(tmp_path / "model")), tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def test_a_name_without_the_hub_is_one_line(self, tmp_path: Path) -> None:
        done = run_in_a_fresh_process("owner/model", tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("There is no folder owner/model, and the Hugging Face hub cannot be reached")


class TestVocabularyAndContext:
    def test_they_are_those_of_the_config(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path, config={"vocab_size": 512, "max_position_embeddings": 4096})
        assert (facts(tmp_path).vocab_size, facts(tmp_path).context_length) == (512, 4096)

    def test_those_of_the_part_that_writes_text_count(self, tmp_path: Path) -> None:
        text = {"vocab_size": 512, "max_position_embeddings": 4096}
        write_model_folder(tmp_path, config={"text_config": text, "vocab_size": None})
        assert (facts(tmp_path).vocab_size, facts(tmp_path).context_length) == (512, 4096)

    @pytest.mark.parametrize("vocab_size", [None, 499])
    def test_there_are_as_many_ids_as_the_tokenizer_has(self, tmp_path: Path, vocab_size: int | None) -> None:
        write_model_folder(tmp_path, config={"vocab_size": vocab_size})
        assert facts(tmp_path).vocab_size == 500

    def test_the_context_length_need_not_be_told(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path, config={"max_position_embeddings": None})
        assert facts(tmp_path).context_length is None

    @pytest.mark.parametrize("content", [None, "", "{", "[]", "\xff"])
    def test_a_config_that_is_missing_or_broken_is_named(self, tmp_path: Path, content: str | None) -> None:
        path = write_model_folder(tmp_path) / "config.json"
        path.unlink()
        if content is not None:
            path.write_text(content, encoding="latin-1")
        with pytest.raises(ModelNotLoadable, match=r"config\.json") as caught:
            facts(tmp_path)
        assert str(tmp_path) in str(caught.value)

    def test_a_config_may_hold_what_is_no_json_number(self, tmp_path: Path) -> None:
        path = write_model_folder(tmp_path) / "config.json"
        path.write_text('{"vocab_size": 512, "time_step_limit": [0.0, Infinity]}')
        assert facts(tmp_path).vocab_size == 512


class TestEndOfAnswer:
    @pytest.mark.parametrize(
        ("said", "others"), [(EOS, []), ([EOS], []), ([7, EOS, 8, 7], [7, 8]), (9, [9]), ([], []), (None, [])]
    )
    @pytest.mark.parametrize("generation_config", ["auto", "vllm"])
    def test_tokens_beside_the_tokenizers_own_end_it_too(
        self, tmp_path: Path, said: Any, others: list[int], generation_config: str
    ) -> None:
        write_model_folder(tmp_path, config={"eos_token_id": 5}, generation_config={"eos_token_id": said})
        found = defaults(tmp_path, generation_config)
        assert (found.eos_token_id, list(found.stop_token_ids)) == (EOS, others)

    def test_a_tokenizer_may_have_none(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path, generation_config={"eos_token_id": [7, 8]})
        found = load_model_facts(str(tmp_path), eos_token_id=None, tokenizer_vocab_size=500).defaults
        assert (found.eos_token_id, list(found.stop_token_ids)) == (None, [7, 8])

    @pytest.mark.parametrize(
        "config", [{"eos_token_id": 5}, {"eos_token_id": None, "text_config": {"eos_token_id": 5}}]
    )
    def test_without_a_generation_config_the_config_tells(self, tmp_path: Path, config: dict[str, Any]) -> None:
        (write_model_folder(tmp_path, config=config) / "generation_config.json").unlink()
        assert list(defaults(tmp_path).stop_token_ids) == [5]


SAID: dict[str, Any] = {
    "temperature": 0.6,
    "top_p": 0.95,
    "top_k": 50,
    "min_p": 0.05,
    "repetition_penalty": 1.1,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.25,
}


class TestSamplingDefaults:
    def test_the_models_own_are_used(self, tmp_path: Path) -> None:
        said = SAID | {"max_new_tokens": 2048, "do_sample": True, "transformers_version": "4.40.0"}
        write_model_folder(tmp_path, generation_config=said)
        assert defaults(tmp_path) == ModelDefaults(eos_token_id=EOS, stop_token_ids=[], max_tokens=2048, **SAID)

    def test_what_is_null_or_absent_is_neutral(self, tmp_path: Path) -> None:
        path = write_model_folder(tmp_path) / "generation_config.json"
        path.write_text(json.dumps(dict.fromkeys(SAID)))
        assert defaults(tmp_path) == ModelDefaults(eos_token_id=EOS, stop_token_ids=[])

    def test_they_can_be_left_alone(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path, generation_config=SAID)
        assert defaults(tmp_path, "vllm") == ModelDefaults(eos_token_id=EOS, stop_token_ids=[])

    def test_they_can_come_from_another_folder(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path / "model", generation_config={"top_p": 0.5, "eos_token_id": 5})
        other = write_model_folder(tmp_path / "other", generation_config={"top_k": 5, "eos_token_id": 6})
        found = defaults(tmp_path / "model", str(other))
        assert found == ModelDefaults(eos_token_id=EOS, stop_token_ids=[6], top_k=5)

    @pytest.mark.parametrize("name", ["nothing", ""])
    def test_another_folder_without_them_is_named(self, tmp_path: Path, name: str) -> None:
        write_model_folder(tmp_path / "model")
        (tmp_path / "empty").mkdir()
        with pytest.raises(ModelNotLoadable, match=str(tmp_path)):
            defaults(tmp_path / "model", str(tmp_path / name))

    @pytest.mark.parametrize(
        "said",
        [{"temperature": "hot"}, {"top_p": 1.5}, {"top_k": [1]}, {"max_new_tokens": 0}, {"eos_token_id": [2**31]}],
    )
    def test_what_no_request_could_ask_for_is_refused(self, tmp_path: Path, said: dict[str, Any]) -> None:
        write_model_folder(tmp_path, generation_config=said)
        with pytest.raises(ModelNotLoadable, match=r"generation_config\.json is not usable: .*" + next(iter(said))[:4]):
            facts(tmp_path)


class TestOverriddenDefaults:
    """`--override-generation-config`"""

    @pytest.mark.parametrize("source", ["auto", "vllm"])
    def test_it_wins_over_whatever_it_overrides(self, tmp_path: Path, source: str) -> None:
        write_model_folder(tmp_path, generation_config={"top_k": 5, "temperature": 0.5})
        found = defaults(tmp_path, source, temperature=0.25, nobody_knows=1)
        assert (found.temperature, found.top_k) == (0.25, 5 if source == "auto" else 0)

    def test_a_null_takes_away_what_the_model_says(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path, generation_config={"top_k": 5, "max_new_tokens": 7})
        found = facts(tmp_path, top_k=None, max_new_tokens=None)
        assert found.defaults == ModelDefaults(eos_token_id=EOS, stop_token_ids=[])
        assert found.max_output_tokens is None

    def test_it_does_not_say_what_ends_an_answer(self, tmp_path: Path) -> None:
        write_model_folder(tmp_path, generation_config={"eos_token_id": 5})
        assert defaults(tmp_path, eos_token_id=6).stop_token_ids == [5]

    @pytest.mark.parametrize("override", [{"temperature": "hot"}, {"top_p": 1.5}, {"max_new_tokens": 0}])
    def test_what_no_request_could_ask_for_is_refused(self, tmp_path: Path, override: dict[str, Any]) -> None:
        write_model_folder(tmp_path)
        with pytest.raises(ModelNotLoadable, match=r"^--override-generation-config is not usable: "):
            facts(tmp_path, **override)

    @pytest.mark.parametrize(
        ("override", "wrong"),
        [
            ({"temperature": "abc"}, 'temperature must be a number, got "abc".'),
            ({"top_p": 0.5, "min_p": True}, "min_p must be a number, got true."),
            ({"top_k": 1.5}, "top_k must be an integer, got 1.5."),
            ({"max_new_tokens": [1]}, "max_new_tokens must be an integer, got [1]."),
            ({"eos_token_id": "abc"}, 'eos_token_id must be a token id, or a list of them, got "abc".'),
            ({"eos_token_id": [1, 2**31]}, "eos_token_id must be a token id, or a list of them, got [1, 2147483648]."),
        ],
    )
    def test_a_value_of_another_type_is_named(self, tmp_path: Path, override: dict[str, Any], wrong: str) -> None:
        write_model_folder(tmp_path)
        with pytest.raises(ModelNotLoadable) as told:
            facts(tmp_path, **override)
        assert str(told.value) == f"--override-generation-config is not usable: {wrong}"

    def test_new_tokens_are_a_default_of_the_model_and_a_limit_of_the_operator(self, tmp_path: Path) -> None:
        model = write_model_folder(tmp_path / "model", generation_config={"max_new_tokens": 7})
        other = str(write_model_folder(tmp_path / "other", generation_config={"max_new_tokens": 9}))
        assert [
            (found.defaults.max_tokens, found.max_output_tokens) for found in (facts(model), facts(model, "vllm"))
        ] == [
            (7, None),
            (None, None),
        ]
        for source, said in (("auto", 8), ("vllm", 8), (other, 8)):
            found = facts(model, source, max_new_tokens=said)
            assert (found.defaults.max_tokens, found.max_output_tokens) == (8, 8)
        assert (facts(model, other).defaults.max_tokens, facts(model, other).max_output_tokens) == (9, 9)


def test_a_file_that_a_model_does_not_have_is_none(tmp_path: Path) -> None:
    assert ModelFiles(str(tmp_path)).find("config.json") is None
    assert ModelFiles(str(tmp_path)).read_json("config.json") is None
