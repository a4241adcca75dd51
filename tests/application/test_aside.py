"""Long prompts must not hold up everybody else's answers."""

import threading

import pytest
from msgspec import structs

from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import ByteTokenizer
from adapters.outbound.mock_engine.scripted import steps
from application.requests import Chat, Completion, Truncation
from application.services.aside import SHORT
from application.services.chat import CompleteChat
from application.services.completions import CompleteText
from application.services.render import BadWordNotUsable, Render
from tests.application.serving import chat, completion, serve


class Watched(ByteTokenizer):
    """Remembers in which threads it encoded."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        self.threads.append(threading.current_thread())
        return super().encode(text, add_special_tokens=add_special_tokens)


@pytest.mark.parametrize("ask", [completion, chat])
@pytest.mark.parametrize("is_long", [False, True])
async def test_only_long_prompts_are_tokenised_in_another_thread(ask: type, is_long: bool) -> None:
    served, tokenizer = serve(steps(104)), Watched()
    render = Render(tokenizer, PlainChat())
    request: Chat | Completion = ask("a" * (SHORT + 1 if is_long else 10))
    request = structs.replace(request, truncation=Truncation(tokens=5))

    generate = served.complete_text._generate
    if isinstance(request, Chat):
        choices = (await CompleteChat(render, generate, served.complete_chat._options)(request)).choices
    else:
        choices = await CompleteText(render, generate)(request)
    await choices.aclose()

    assert [thread is threading.main_thread() for thread in tokenizer.threads] == [not is_long]


@pytest.mark.parametrize("is_long", [False, True])
async def test_only_long_words_are_tokenised_in_another_thread(is_long: bool) -> None:
    served, tokenizer = serve(steps(104)), Watched()
    served.complete_text._generate._render = Render(tokenizer, PlainChat())
    request = structs.replace(completion("a"), bad_words=["b" * (SHORT + 1 if is_long else 10)])
    try:
        await (await served.complete_text(request)).aclose()
    except BadWordNotUsable:
        assert is_long
    assert {thread is threading.main_thread() for thread in tokenizer.threads} == {not is_long}
