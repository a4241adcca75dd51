"""What the served model is. Whoever prepares a request may read it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field


class ModelDefaults(Struct, frozen=True, kw_only=True):
    """What the model itself defaults to; lowering and rendering may read it."""

    eos_token_id: int | None = None
    stop_token_ids: Sequence[int] = ()
    """Further tokens that end an answer, from the model's generation config; not with `ignore_eos`."""
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    max_tokens: int | None = None
    """None: as many as fit. Completions default to 16 all the same."""
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Variables of the chat template that a request may override, each by itself."""
    trust_request_chat_template: bool = False
    """Whether a request may bring its own template, which runs here."""


class ModelLimits(Struct, frozen=True, kw_only=True):
    """What the model and the operator allow. The context length is the engine's to tell."""

    vocab_size: int
    max_logprobs: int = 20
    """The most alternatives a request may ask for; -1 is the whole vocabulary."""
    max_output_tokens: int | None = None
    """No answer is longer, whatever is asked. None: as long as fits."""
