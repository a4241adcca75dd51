"""A conversation in the shape that chat templates read."""

from collections.abc import Sequence
from typing import Any

from domain.chat import Message

Turn = dict[str, Any]
"""A message as templates see it: role and content, and what else it has."""


def turns(messages: Sequence[Message], *, content_in_parts: bool, knows_developer: bool) -> list[Turn]:
    """Shapes the messages for a template: its content as a list of parts or as one text; developer messages as system
    messages, where it knows no such role. Same as vLLM, to the letter, so that prompts are the same."""
    conversation = [_turn(message, content_in_parts) for message in messages]
    if knows_developer or not any(turn["role"] == "developer" for turn in conversation):
        return conversation
    for turn in conversation:
        if turn["role"] == "developer":
            turn["role"] = "system"
    return _with_one_system_turn(conversation)


def _turn(message: Message, content_in_parts: bool) -> Turn:
    turn: Turn = {"role": message.role}
    if content_in_parts and message.role != "tool":  # few templates read the parts of a tool's result
        parts = [message.content] if isinstance(message.content, str) else message.content
        turn["content"] = [{"type": "text", "text": part} for part in parts]
    else:
        turn["content"] = message.text
    if message.role == "assistant" and message.reasoning is not None:
        # Same as vLLM: templates know it by either name.
        turn["reasoning"] = turn["reasoning_content"] = message.reasoning
    if message.role == "tool" and message.tool_call_id is not None:
        turn["tool_call_id"] = message.tool_call_id
    if message.name is not None:
        turn["name"] = message.name
    return turn


def _with_one_system_turn(conversation: list[Turn]) -> list[Turn]:
    """Templates that take a system message take it first only."""
    system = [turn for turn in conversation if turn["role"] == "system"]
    if system == conversation[:1]:
        return conversation
    text = "\n\n".join(filter(None, map(_text, system)))
    return [{"role": "system", "content": text}, *(turn for turn in conversation if turn["role"] != "system")]


def _text(turn: Turn) -> str:
    content = turn["content"]
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)
