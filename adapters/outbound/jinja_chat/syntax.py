"""What can be told of a chat template without running it."""

from functools import lru_cache
from typing import Final, Literal

import jinja2
import jinja2.meta
from msgspec import Struct

from adapters.outbound.jinja_chat.content_format import iterates_over_content

ContentFormat = Literal["auto", "string", "openai"]
"""How templates get content: as text, in parts, or whichever the template seems to expect."""

KEPT: Final = 32
"""How many templates are remembered: requests may bring their own."""


class TemplateSyntax(Struct, frozen=True):
    """One template, compiled."""

    source: str
    iterates_over_content: bool
    knows_developer: bool
    variables: frozenset[str]
    """What it reads and does not set itself."""


@lru_cache(KEPT)
def syntax_of(source: str) -> TemplateSyntax:
    """Compiles it as transformers does, which keeps it. Raises whatever jinja2 does if it is no template."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    environment: jinja2.Environment = _compile_jinja_template(source).environment
    tree = environment.parse(source)
    return TemplateSyntax(
        source=source,
        iterates_over_content=iterates_over_content(tree),
        # Same as vLLM: a template that knows the role compares with its name.
        knows_developer=any(f"{quote}developer{quote}" in source for quote in "\"'"),
        variables=frozenset(jinja2.meta.find_undeclared_variables(tree)),
    )
