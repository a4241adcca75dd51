"""The rule: a request's own value, else the server's default."""

from msgspec import Struct


def shows_token_ids(requested: bool | None, server_default: bool) -> bool:
    """Whether logprob tokens of one response are shown as `token_id:{id}` placeholders.

    `requested` is the request's `return_tokens_as_token_ids`; None means that it was absent or null.
    An explicit value wins either way, so a request can opt out on a server whose default is on.
    """
    return server_default if requested is None else requested


class UsageShown(Struct, frozen=True, kw_only=True):
    """Where one answer tells its usage, and how much of it."""

    at_end: bool = False
    """Streamed: in a chunk of its own, the last."""
    so_far: bool = False
    """Streamed: in every chunk, what was used up to it."""
    prompt_details: bool = False
    """How many of the prompt's tokens were cached."""


def shows_usage(*, at_end: bool, so_far: bool, forced: bool, prompt_details: bool) -> UsageShown:
    """`at_end` and `so_far` are the request's, the others the server's.

    Same as vLLM: a request hears of what was used so far only if of all in the end; a server that forces usage tells
    both, whatever is asked.
    """
    return UsageShown(at_end=forced or at_end, so_far=forced or (at_end and so_far), prompt_details=prompt_details)
