"""Rendering by transformers, which runs each template in the environment it was written for."""

import inspect
import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import jinja2

from adapters.outbound.jinja_chat.conversation import turns
from adapters.outbound.jinja_chat.syntax import ContentFormat, TemplateSyntax, syntax_of
from adapters.outbound.jinja_chat.template import ChatTemplateNotLoadable, NoChatTemplate, template_of
from application.ports.chat_renderer import ChatRenderer, ConversationNotRenderable
from domain.chat import Message, Rendering

LONGEST_REASON = 500
"""Characters of what a template says that are passed on: it may quote the conversation."""

_KIND = re.compile(r"\b(?:\w+\.)+\w+ (?=object\b)")
"""The name of a kind of object that a template's author did not make."""


class TemplateTokenizer(Protocol):
    """What is used of a transformers tokenizer."""

    @property
    def chat_template(self) -> str | Mapping[str, str] | None: ...

    def apply_chat_template(self, conversation: list[dict[str, Any]], **kwargs: Any) -> Any: ...


class JinjaChat(ChatRenderer):
    """The template is compiled once, here. What is wrong with a model's own is told to whoever uses it: the model still
    completes texts."""

    def __init__(
        self,
        tokenizer: TemplateTokenizer,
        chat_template: str | None = None,
        content_format: ContentFormat = "auto",
    ) -> None:
        """`chat_template` is used instead of the model's own. Raises ChatTemplateNotLoadable if it is no Jinja."""
        self._tokenizer = tokenizer
        self._parameters = frozenset(inspect.signature(tokenizer.apply_chat_template).parameters)
        self._content_format = content_format
        self._syntax: TemplateSyntax | None = None
        self._unusable = ""
        try:
            self._syntax = syntax_of(template_of(tokenizer.chat_template) if chat_template is None else chat_template)
        except NoChatTemplate as error:
            self._unusable = str(error)
        except Exception as error:
            if chat_template is not None:
                raise ChatTemplateNotLoadable(f"--chat-template: not valid: {_said(error)}") from error
            self._unusable = f"The model's chat template is not valid: {_said(error)}"

    def render(self, messages: Sequence[Message], rendering: Rendering) -> str:
        syntax = self._syntax_for(rendering)
        variables = self._variables(rendering, syntax)
        in_parts = syntax.iterates_over_content if self._content_format == "auto" else self._content_format == "openai"
        conversation = turns(messages, content_in_parts=in_parts, knows_developer=syntax.knows_developer)
        try:
            prompt = self._tokenizer.apply_chat_template(
                conversation,
                chat_template=syntax.source,
                tokenize=False,
                add_generation_prompt=rendering.add_generation_prompt,
                continue_final_message=rendering.continue_final_message,
                **variables,
            )
            return _unicode(str(prompt))
        except Exception as error:
            raise ConversationNotRenderable(_reason(error, rendering), "messages") from error

    def _syntax_for(self, rendering: Rendering) -> TemplateSyntax:
        if rendering.template is not None:
            try:
                return syntax_of(self._named(rendering.template))
            except Exception as error:
                message = f"The chat template is not valid: {_said(error)[:LONGEST_REASON]}"
                raise ConversationNotRenderable(message, "chat_template") from error
        if self._syntax is None:
            raise ConversationNotRenderable(self._unusable, "messages")
        return self._syntax

    def _named(self, template: str) -> str:
        """A model that comes with several templates has names for them."""
        known = self._tokenizer.chat_template
        return known.get(template, template) if isinstance(known, Mapping) else template

    def _variables(self, rendering: Rendering, syntax: TemplateSyntax) -> dict[str, Any]:
        """What the template reads of what was given. The rest is dropped here, for it would be transformers' own
        parameters otherwise."""
        if "messages" in rendering.kwargs:
            message = "chat_template_kwargs cannot hold messages: they have a field of their own."
            raise ConversationNotRenderable(message, "chat_template_kwargs")
        variables = {
            name: value
            for name, value in rendering.kwargs.items()
            if name in ("tools", "documents") or (name in syntax.variables and name not in self._parameters)
        }
        return variables if rendering.documents is None else variables | {"documents": rendering.documents}


def _unicode(prompt: str) -> str:
    """Raises UnicodeEncodeError for half a character, which a template can write and no tokenizer reads."""
    prompt.encode()
    return prompt


def _reason(error: Exception, rendering: Rendering) -> str:
    if rendering.continue_final_message and type(error) is ValueError:
        # transformers would quote the whole conversation
        return "The final message cannot be continued: the chat template leaves it out or does not keep it as it is."
    return f"The chat template does not take this conversation. {_said(error)[:LONGEST_REASON]}"


def _said(error: Exception) -> str:
    """What a template's author can make something of."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        said = f"{error.message} (line {error.lineno})"
    elif type(error) is jinja2.TemplateError:
        said = str(error)  # the template raised it itself, in its own words
    else:
        told = _KIND.sub("", str(error)) if isinstance(error, jinja2.TemplateError) else "It fails."
        said = told + _place(error)
    return said.encode(errors="replace").decode()


def _place(error: Exception) -> str:
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == "<template>"]
    return f" (line {lines[-1]})" if lines else ""
