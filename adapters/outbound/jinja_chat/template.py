"""Where a chat template comes from."""

from collections.abc import Mapping
from pathlib import Path

DEFAULT = "default"


class ChatTemplateNotLoadable(Exception):
    """The chat template that the server was started with is missing or no Jinja. The message is one line."""


class NoChatTemplate(Exception):
    """The model comes without one that could be used."""


def read_chat_template(value: str) -> str:
    """The template that a command line names: the content of that file, or, if it looks like one, a template itself.

    Raises ChatTemplateNotLoadable."""
    if any(character in value for character in "{}\n"):
        return value
    try:
        return Path(value).read_text()
    except OSError as error:
        raise ChatTemplateNotLoadable(f"--chat-template: {value} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ChatTemplateNotLoadable(f"--chat-template: {value} is not UTF-8") from error


def template_of(source: str | Mapping[str, str] | None) -> str:
    """The template for a plain conversation, of those that a model comes with. Raises NoChatTemplate."""
    if source is None:
        raise NoChatTemplate("The model has no chat template, so it takes no conversations.")
    if isinstance(source, str):
        return source
    if DEFAULT not in source:
        names = ", ".join(sorted(source))
        raise NoChatTemplate(f"The model has several chat templates and none of them is the default: {names}.")
    return source[DEFAULT]
