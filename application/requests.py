"""What a client asks of a service: a request, lowered. Nothing of it depends on how this server is set up.

It stands apart from the services so that whatever makes a request reaches no server option, not even by import.
"""

from collections.abc import Sequence

from msgspec import Struct

from domain.chat import Message
from domain.sampling import SamplingParams


class TextOutput(Struct, frozen=True, kw_only=True):
    """How a request wants what is generated for it to be shown."""

    stop: Sequence[str] = ()
    skip_special_tokens: bool = True
    return_tokens_as_token_ids: bool | None = None
    """None: absent or null, so the server's default holds."""
    echo: bool = False
    """Repeat the prompt before the output."""
    prompt_only: bool = False
    """Show no output at all: the prompt, and its scores, alone."""


class Chat(Struct, frozen=True, kw_only=True):
    """A conversation to answer, and how."""

    request_id: str
    messages: Sequence[Message]
    sampling: SamplingParams
    output: TextOutput
    max_tokens_field: str = "max_tokens"
    """Which of the two fields that limit the answer the caller used."""


class Completion(Struct, frozen=True, kw_only=True):
    """A text to go on with, and how."""

    request_id: str
    prompts: Sequence[str | Sequence[int]]
    """Each a choice of its own, in this order."""
    sampling: SamplingParams
    output: TextOutput
