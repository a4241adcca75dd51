"""A model file: weights, vocabulary, and what it says of itself."""

from pathlib import Path
from typing import Any, Self

from adapters.outbound.llamacpp_engine.library import LibraryLog, load_library
from domain.errors import EngineFailure

MOST_LAYERS = 999
"""More than any model has: all that a graphics card of this build takes are given to it."""


class ModelFileNotLoadable(EngineFailure):
    """The file is missing, or no model that llama.cpp runs. The message is one line."""


class GgufModel:
    """A loaded model. It stays in memory until it is closed, for as long as anything made of it is in use."""

    def __init__(self, path: str) -> None:
        """Raises LibraryMissing, ModelFileNotLoadable. Takes from a second for small models to minutes."""
        self.path = path
        self.library = load_library()
        if not Path(path).is_file():
            raise ModelFileNotLoadable(f"There is no file {path}.")
        self._log = LibraryLog(self.library)
        params = self.library.LlamaModelParams()
        params.n_gpu_layers = MOST_LAYERS
        try:
            self.library.ggml_backend_load_all()
            self.native: Any = self.library.LlamaModel(path, params, verbose=False)
        except Exception as error:
            said = self._log.last_error or str(error)
            self._log.close()
            raise ModelFileNotLoadable(f"{path} is no model that llama.cpp can load: {said}") from error
        self.vocab: Any = self.native.get_vocab()
        self.metadata: dict[str, str] = self.native.metadata()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything. May be called again."""
        self.native = self.vocab = None
        self._log.close()

    @property
    def vocab_size(self) -> int:
        size: int = self.native.n_vocab
        return size

    @property
    def trained_length(self) -> int:
        """Tokens of the context that the model was trained for."""
        length: int = self.native.n_ctx_train
        return length

    @property
    def description(self) -> str:
        """For people: how big it is, and how its weights are kept."""
        native = self.native
        kept = self.library.llama_ftype_name(native.ftype)
        return f"{native.n_params / 1e6:,.0f}M parameters in {kept}, {native.size / 1e6:,.0f} MB"

    @property
    def reuses_prefixes(self) -> bool:
        """Whether what was computed for a prompt can be cut back to, and shared as, any beginning of it."""
        native = self.native
        return not (native.is_recurrent() or native.is_hybrid() or native.n_swa)

    @property
    def eos_token_id(self) -> int | None:
        token_id: int = self.vocab.token_eos()
        return token_id if token_id >= 0 else None

    def end_token_ids(self) -> list[int]:
        """Every token that ends an answer, as llama.cpp sees it."""
        return [token_id for token_id in range(self.vocab_size) if self.vocab.is_eog(token_id)]

    def token_text(self, key: str) -> str | None:
        """What the token reads as that the metadata names by `key`, such as `bos`."""
        token_id = self.metadata.get(f"tokenizer.ggml.{key}_token_id")
        return None if token_id is None else self.vocab.get_text(int(token_id))

    @property
    def chat_template(self) -> str | None:
        return self.metadata.get("tokenizer.chat_template")
