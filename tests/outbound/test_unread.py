"""transformers gives the same, whether it was read before a tokenizer is taken from it or not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.tokenizers import write_model_folder

CLASSES = [
    None,
    "PreTrainedTokenizerFast",
    "PreTrainedTokenizer",
    "LlamaTokenizerFast",
    "Qwen2Tokenizer",
    "GPT2TokenizerFast",
    "GemmaTokenizer",
    "BertTokenizerFast",
    "T5Tokenizer",
    "MistralCommonTokenizer",
    "NoSuchTokenizer",
]

LOADED = """
from pathlib import Path
from adapters.outbound.hf_tokenizer.loading import configuration, load_tokenizer
from adapters.outbound.hf_tokenizer.model_files import ModelNotLoadable
for name in sys.argv[1:]:
    try:
        loaded = load_tokenizer(name)
    except ModelNotLoadable as error:
        print(str(error).replace(name, ""))
    else:
        known = {name: str(value) for name, value in configuration(loaded).items() if name != "name_or_path"}
        print(loaded.backend_tokenizer.to_str(), known, loaded.eos_token_id, dict(loaded.special_tokens_map))
"""

ASKED_AFTERWARDS = """
import sys
from adapters.outbound.hf_tokenizer.unread import leave_unread
leave_unread()
import transformers
from transformers.utils import logging
before = transformers
assert logging.get_logger("transformers")
assert transformers.__version__
from transformers import GPT2Config, PreTrainedTokenizerFast
assert GPT2Config().model_type == "gpt2"
assert before.models.gpt2.GPT2Config is GPT2Config
assert before.PreTrainedTokenizerFast is PreTrainedTokenizerFast
assert not hasattr(before, "nothing")
import transformers
assert transformers.GPT2Config is GPT2Config
"""


def said(source: str, *arguments: str | Path) -> list[str]:
    environment = os.environ | {"PYTHONPATH": str(Path.cwd()), "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1"}
    command = [sys.executable, "-c", source, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    """A model of each class."""
    made = []
    for index, name in enumerate(CLASSES):
        folder = write_model_folder(tmp_path / str(index))
        config = folder / "tokenizer_config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "tokenizer_class": name}))
        made.append(folder)
    return made


def test_a_tokenizer_is_the_same(folders: list[Path]) -> None:
    """Each in a process where nothing has been asked for yet."""
    read = said("import sys, transformers\n" + LOADED, *folders)

    assert len(read) == len(CLASSES)
    assert [said("import sys\n" + LOADED, folder) for folder in folders] == [[one] for one in read]


def test_what_else_it_has_is_there_to_be_asked_for() -> None:
    said(ASKED_AFTERWARDS)
