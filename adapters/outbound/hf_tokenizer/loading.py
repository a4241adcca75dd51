"""Loading a tokenizer the way the engine loads it: by transformers, which knows each model's particularities."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import tokenizers

from adapters.outbound.hf_tokenizer.model_files import ModelFiles, ModelNotLoadable, one_line
from adapters.outbound.hf_tokenizer.unread import leave_unread
from adapters.outbound.hf_tokenizer.vocabulary import VocabularyNotation

FILES = ("vocab_file", "merges_file", "tokenizer_file")


class PretrainedTokenizer(Protocol):
    """What is used of a transformers tokenizer that is a fast one."""

    @property
    def backend_tokenizer(self) -> tokenizers.Tokenizer: ...

    @property
    def eos_token_id(self) -> int | None: ...

    @property
    def init_kwargs(self) -> dict[str, Any]: ...

    @property
    def chat_template(self) -> str | dict[str, str] | None: ...

    def apply_chat_template(self, conversation: list[dict[str, Any]], **kwargs: Any) -> Any: ...


def load_tokenizer(name: str, *, revision: str | None = None, trust_remote_code: bool = False) -> PretrainedTokenizer:
    """The tokenizer in a folder, or of a name on the Hugging Face hub. Takes about half a second, mostly for imports.

    Raises ModelNotLoadable, also where there is none of the fast kind."""
    files = ModelFiles(name, revision)
    files.find("tokenizer_config.json")  # tells in plain words when there is no such model
    try:
        with quiet_without_torch():
            if not trust_remote_code:  # which may import it by names that only it knows
                leave_unread()
            from transformers.models.auto.tokenization_auto import AutoTokenizer

            loaded = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=trust_remote_code)
        if getattr(loaded, "backend_tokenizer", None) is None:
            raise ModelNotLoadable(_no_fast_tokenizer(name))
        VocabularyNotation(loaded.backend_tokenizer)  # refused by name, here rather than where it is first used
    except ModelNotLoadable:
        raise
    except Exception as error:
        raise ModelNotLoadable(_why(name, error)) from error
    return loaded


def configuration(tokenizer: PretrainedTokenizer) -> dict[str, Any]:
    """What a tokenizer was made from, as JSON has it: about what its tokenizer_config.json says."""
    known = {name: _plain(value) for name, value in tokenizer.init_kwargs.items() if name not in FILES}
    return {"tokenizer_class": type(tokenizer).__name__} | known


def _plain(value: Any) -> Any:
    """An added token is its content. What JSON has no form for is what it says of itself."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    content = getattr(value, "content", value)
    return content if content is None or isinstance(content, str | int | float) else str(content)


def _why(name: str, error: Exception) -> str:
    said = str(error)
    if "trust_remote_code" in said:
        return f"The tokenizer of {name} is code of its own, which runs with --trust-remote-code only."
    if "backend tokenizer" in said:
        return _no_fast_tokenizer(name)
    return f"The tokenizer of {name} cannot be loaded: {one_line(error)}"


def _no_fast_tokenizer(name: str) -> str:
    return f"{name} has no fast tokenizer: no tokenizer.json, nor files to make it from."


@contextmanager
def quiet_without_torch() -> Iterator[None]:
    """Keeps transformers from importing torch, where it is installed, and from advising to, where it is not.

    Serving needs no torch, which costs seconds and hundreds of megabytes."""
    sys.modules.setdefault("torch", None)  # type: ignore[arg-type]  # Python's own mark for "not to be imported"
    variable = "TRANSFORMERS_NO_ADVISORY_WARNINGS"
    before = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
