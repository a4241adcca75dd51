"""Long prompts must not hold up everybody else's answers."""

import threading

import pytest
from msgspec import structs

from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import VOCAB_SIZE, ByteTokenizer
from application.model import ModelDefaults, ModelLimits
from application.requests import Chat, Completion, Truncation
from application.services.aside import SHORT
from application.services.prepare import Prepare
from application.services.render import BadWordNotUsable, Render
from tests.application.serving import chat, completion


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
    tokenizer = Watched()
    prepare = Prepare(Render(tokenizer, PlainChat()), ModelDefaults(), ModelLimits(vocab_size=VOCAB_SIZE), 2 * SHORT)
    request: Chat | Completion = ask("a" * (SHORT + 1 if is_long else 10))
    request = structs.replace(request, truncation=Truncation(tokens=5))

    await (prepare.chat(request) if isinstance(request, Chat) else prepare.completion(request))

    assert [thread is threading.main_thread() for thread in tokenizer.threads] == [not is_long]


@pytest.mark.parametrize("is_long", [False, True])
async def test_only_long_words_are_tokenised_in_another_thread(is_long: bool) -> None:
    tokenizer = Watched()
    prepare = Prepare(Render(tokenizer, PlainChat()), ModelDefaults(), ModelLimits(vocab_size=VOCAB_SIZE), 100)
    request = structs.replace(completion("a"), bad_words=["b" * (SHORT + 1 if is_long else 10)])
    try:
        await prepare.completion(request)
    except BadWordNotUsable:
        assert is_long
    assert tokenizer.threads[0] is threading.main_thread()
    assert {thread is threading.main_thread() for thread in tokenizer.threads[1:]} == {not is_long}
