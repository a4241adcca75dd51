"""What a client asks of a service: a request, lowered. Nothing of it depends on how this server is set up.

It stands apart from the services so that whatever makes a request reaches no server option, not even by import.
"""

from collections.abc import Sequence

from msgspec import Struct

from domain.chat import Message, Rendering
from domain.generation import TokenDelta
from domain.lora import LoraAdapter
from domain.sampling import SamplingParams


class Scheduling(Struct, frozen=True, kw_only=True):
    """What an engine is told about a request besides its sampling."""

    priority: int = 0
    cache_salt: str | None = None
    session_id: str | None = None
    data_parallel_rank: int | None = None


class Truncation(Struct, frozen=True, kw_only=True):
    """How many tokens of a prompt are kept, and which."""

    tokens: int
    """-1: as many as leave room for an output."""
    keeps_end: bool = True


class TextOutput(Struct, frozen=True, kw_only=True):
    """How a request wants what is generated for it to be shown."""

    n: int = 1
    """How many choices each prompt gets."""
    stop: Sequence[str] = ()
    include_stop: bool = False
    """Whether the string or token that stops the output is part of its text."""
    interval: int = 1
    """Tokens gathered before they are shown, but for the first and the last."""
    usage_at_end: bool = False
    """Streamed: end with a chunk that has the usage and no choices."""
    usage_so_far: bool = False
    """Streamed: put the usage so far into every chunk."""
    skip_special_tokens: bool = True
    return_tokens_as_token_ids: bool | None = None
    """None: absent or null, so the server's default holds."""
    reads_tokens: bool = True
    """Whether there is any text: stop strings are found in it, and rows tell what tokens read as."""
    echo: bool = False
    """Repeat the prompt before the output."""
    prompt_only: bool = False
    """Show no output at all: the prompt, and its scores, alone."""


class TextRequest(Struct, frozen=True, kw_only=True):
    """What chat and completions have in common."""

    request_id: str
    sampling: SamplingParams
    output: TextOutput
    bad_words: Sequence[str] = ()
    """Words that must not come up."""
    truncation: Truncation | None = None
    scheduling: Scheduling = Scheduling()
    adapter: LoraAdapter | None = None
    """None: the model alone answers."""


class Text(Struct, frozen=True):
    """What is one prompt as it is."""

    text: str
    add_special_tokens: bool = True


class Conversation(Struct, frozen=True, kw_only=True):
    """What becomes one prompt by a chat template."""

    messages: Sequence[Message]
    rendering: Rendering = Rendering()
    add_special_tokens: bool = False
    """Whether the tokenizer puts around it what it is configured to: templates usually write that themselves."""


class Chat(TextRequest, frozen=True, kw_only=True):
    """A conversation to answer, and how."""

    conversation: Conversation
    prompt_token_ids: Sequence[int] | None = None
    """The prompt, where it is known already."""
    echo: bool = False
    """Repeat the final message before the answer, if it is of who answers."""
    return_prompt_text: bool = False
    """Show the conversation as the template wrote it."""
    max_tokens_field: str = "max_tokens"
    """Which of the two fields that limit the answer the caller used."""


class Completion(TextRequest, frozen=True, kw_only=True):
    """A text to go on with, and how."""

    prompts: Sequence[str | Sequence[int]]
    """Each a choice of its own, in this order."""
    add_special_tokens: bool = True
    """Whether the tokenizer puts around a text what it is configured to."""


class Continuation(TextRequest, frozen=True, kw_only=True):
    """Tokens to go on with, and how."""

    token_ids: Sequence[int]


class Replay(Struct, frozen=True, kw_only=True):
    """What was generated for one prompt elsewhere."""

    deltas: Sequence[TokenDelta]
    """Of each choice all there is, or what came next."""
    prompt_token_ids: Sequence[int] | None
    """As far as they were told: the last few are enough, but for an echo and for scores."""
    prompt_tokens: int | None
    param: str
    """The request field that it came in."""
