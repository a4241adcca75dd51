"""How this server answers, fixed when it is built.

It stands alone so that an import contract can keep it from whatever prepares a request.
"""

from typing import Literal

from msgspec import Struct

FingerprintMode = Literal["full", "hash", "custom", "none"]


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Defaults of the response stage. Only services read them: lowering and rendering never do."""

    default_return_tokens_as_token_ids: bool = False
    response_role: str = "assistant"
    """Who answers a conversation."""
    forces_usage: bool = False
    """Whether every stream tells its usage, asked for or not."""
    tells_prompt_details: bool = False
    """Whether the usage says how many of the prompt's tokens were cached."""
    tells_timing: bool = False
    """Whether an answer of one choice says how long its engine took."""
    tokens_only: bool = False
    """Whether no text is made of tokens where the caller sends tokens."""
    fingerprint_mode: FingerprintMode = "full"
    fingerprint_value: str | None = None
    """What a `custom` fingerprint is."""
    stream_interval: int = 1
    """Tokens gathered before they are shown, at least; a request may ask for more."""
