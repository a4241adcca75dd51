"""What is to be tokenised, as the service takes it. Knows no server option."""

from adapters.inbound.http.openai.chat.lower import lower_conversation
from adapters.inbound.http.openai.sampling import InvalidField, refuse_unbuilt
from adapters.inbound.http.vllm.tokenize.schema import TokenizeRequest
from application.model import ModelDefaults
from application.requests import Conversation, Text


def lower(body: TokenizeRequest, defaults: ModelDefaults) -> Text | Conversation:
    """A text as completions take it, or a conversation as chat does. Raises RequestError."""
    refuse_unbuilt(body)
    if body.messages is not None and body.prompt is None:
        return lower_conversation(body, body.messages, defaults)
    if body.messages is None and body.prompt is not None:
        return Text(body.prompt, body.add_special_tokens is not False)
    raise InvalidField("Either prompt or messages must be given.", "prompt")
