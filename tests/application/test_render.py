"""From what a client sends to the prompt it means, with no server in sight."""

import pytest

from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import ByteTokenizer
from application.ports.chat_renderer import ConversationNotRenderable
from application.requests import Conversation
from application.services.render import Render
from domain.chat import Message
from domain.prompt import Prompt


class Wrapping(ByteTokenizer):
    """Puts its first special token before a text, as a model may have it configured."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return [256] * add_special_tokens + super().encode(text, add_special_tokens=False)

    def encode_offsets(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return [0] * add_special_tokens + super().encode_offsets(text, add_special_tokens=False)


RENDER = Render(Wrapping(), PlainChat())


def test_a_text_gets_the_models_own_special_tokens() -> None:
    assert RENDER.text("ab") == Prompt([256, 97, 98], "ab")


def test_token_ids_get_none_and_have_no_text() -> None:
    assert RENDER.text([97, 98]) == Prompt([97, 98], None)


class TestWhereTokensStart:
    """Contract 6.2: told where an echo needs it, and only where the tokens themselves do not tell."""

    def test_tokens_that_read_as_the_text_tell_by_themselves(self) -> None:
        render = Render(ByteTokenizer(), PlainChat())

        assert render.text("né<|eos|>", locate=True) == Prompt([110, 0xC3, 0xA9, 257], "né<|eos|>")

    def test_else_the_tokenizer_says(self) -> None:
        assert RENDER.text("né", locate=True) == Prompt([256, 110, 0xC3, 0xA9], "né", [0, 0, 1, 1])

    def test_nobody_asks_it_for_nothing(self) -> None:
        assert RENDER.text("né").offsets is None
        assert RENDER.text([256, 110], locate=True).offsets is None


def test_a_conversation_has_those_that_the_template_wrote_and_no_more() -> None:
    prompt = RENDER.chat(Conversation(messages=[Message("user", "a")]))

    assert prompt.text == "<|user|>a<|assistant|>"
    assert list(prompt.token_ids) == [258, 97, 259]


def test_a_conversation_that_the_template_does_not_take_is_refused() -> None:
    with pytest.raises(ConversationNotRenderable) as refused:
        RENDER.chat(Conversation(messages=[Message("nobody", "a")]))

    assert refused.value.param == "messages"
