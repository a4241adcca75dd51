"""What is answered, as JSON. Fields and order as vLLM 0.32 has them."""

from collections.abc import Sequence

from msgspec import Struct


class Tokenized(Struct, kw_only=True):
    count: int
    max_model_len: int
    tokens: Sequence[int]
    token_strs: Sequence[str] | None


class Detokenized(Struct, kw_only=True):
    prompt: str
