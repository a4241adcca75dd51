"""Rendering by transformers, which runs each template in the environment it was written for."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jinja2

from adapters.outbound.jinja_chat.content_format import iterates_over_content
from adapters.outbound.jinja_chat.conversation import turns
from adapters.outbound.jinja_chat.template import ChatTemplateNotLoadable, NoChatTemplate, template_of
from application.ports.chat_renderer import ChatRenderer, ConversationNotRenderable
from domain.chat import Message

LONGEST_REASON = 500
"""Characters of what a template says that are passed on: it may quote the conversation."""


class TemplateTokenizer(Protocol):
    """What is used of a transformers tokenizer."""

    @property
    def chat_template(self) -> str | Mapping[str, str] | None: ...

    def apply_chat_template(self, conversation: list[dict[str, Any]], **kwargs: Any) -> Any: ...


class JinjaChat(ChatRenderer):
    """The template is compiled once, here. What is wrong with a model's own is told to whoever uses it: the model still
    completes texts."""

    def __init__(self, tokenizer: TemplateTokenizer, chat_template: str | None = None) -> None:
        """`chat_template` is used instead of the model's own. Raises ChatTemplateNotLoadable if it is no Jinja."""
        self._tokenizer = tokenizer
        self._template = ""
        self._content_in_parts = False
        self._unusable: str | None = None
        try:
            self._template = template_of(tokenizer.chat_template) if chat_template is None else chat_template
            self._content_in_parts = iterates_over_content(_parse(self._template))
        except NoChatTemplate as error:
            self._unusable = str(error)
        except Exception as error:
            if chat_template is not None:
                raise ChatTemplateNotLoadable(f"The chat template is not valid: {_said(error)}") from error
            self._unusable = f"The model's chat template is not valid: {_said(error)}"
        # Same as vLLM: a template that knows the role compares with its name.
        self._knows_developer = any(f"{quote}developer{quote}" in self._template for quote in "\"'")

    def render(self, messages: Sequence[Message]) -> str:
        if self._unusable is not None:
            raise ConversationNotRenderable(self._unusable, "messages")
        conversation = turns(messages, content_in_parts=self._content_in_parts, knows_developer=self._knows_developer)
        try:
            return str(
                self._tokenizer.apply_chat_template(
                    conversation, chat_template=self._template, tokenize=False, add_generation_prompt=True
                )
            )
        except Exception as error:
            raise ConversationNotRenderable(_reason(error), "messages") from error


def _parse(template: str) -> jinja2.nodes.Template:
    """Compiles it as transformers does, which keeps it, and gives its syntax tree."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    environment: jinja2.Environment = _compile_jinja_template(template).environment
    return environment.parse(template)


def _reason(error: Exception) -> str:
    return f"The chat template does not take this conversation. {_said(error)[:LONGEST_REASON]}"


def _said(error: Exception) -> str:
    if isinstance(error, jinja2.TemplateSyntaxError):
        return f"{error.message} (line {error.lineno})"
    # a plain TemplateError is what a template raises itself, in its own words
    return str(error) if type(error) is jinja2.TemplateError else f"{type(error).__name__}: {error}"
