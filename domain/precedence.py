"""The rule: a request's own value, else the server's default."""


def shows_token_ids(requested: bool | None, server_default: bool) -> bool:
    """Whether logprob tokens of one response are shown as `token_id:{id}` placeholders.

    `requested` is the request's `return_tokens_as_token_ids`; None means that it was absent or null.
    An explicit value wins either way, so a request can opt out on a server whose default is on.
    """
    return server_default if requested is None else requested
