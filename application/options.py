"""How this server answers, fixed when it is built.

It stands alone so that an import contract can keep it from whatever prepares a request.
"""

from msgspec import Struct


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Defaults of the response stage. Only services read them: lowering and rendering never do."""

    default_return_tokens_as_token_ids: bool = False
