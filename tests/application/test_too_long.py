"""A text that cannot fit whatever its tokens are is refused before anybody looks for them."""

import pytest
from msgspec import structs

from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import VOCAB_SIZE, ByteTokenizer
from application.model import ModelDefaults, ModelLimits
from application.requests import Chat, Completion, Truncation
from application.services.prepare import Prepare
from application.services.render import Render
from domain.prompt import Prompt, PromptTooLong
from tests.application.serving import CONTEXT, chat, completion

MOST = CONTEXT * len("<|assistant|>")
"""Characters of so many of the longest tokens."""
WRITTEN = len("<|user|><|assistant|>")
"""By the template, around one message."""


class Counting(ByteTokenizer):
    """Remembers how long the texts were that it encoded."""

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        self.lengths.append(len(text))
        return super().encode(text, add_special_tokens=add_special_tokens)


async def ask(tokenizer: ByteTokenizer, request: Chat | Completion) -> Prompt:
    render = Render(tokenizer, PlainChat())
    prepare = Prepare(render, ModelDefaults(), ModelLimits(vocab_size=VOCAB_SIZE), CONTEXT)
    if isinstance(request, Chat):
        return (await prepare.chat(request)).prompt
    return (await prepare.completion(request))[0].prompt


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        (completion("a" * (MOST + 1)), "prompt"),
        (structs.replace(completion(), prompts=["a" * (MOST + 1), "ab"]), "prompt"),
        (chat("a" * (MOST + 1 - WRITTEN)), "messages"),
    ],
    ids=["completion", "list", "chat"],
)
async def test_it_is_not_tokenised(request_: Chat | Completion, param: str) -> None:
    tokenizer = Counting()
    with pytest.raises(PromptTooLong) as refused:
        await ask(tokenizer, request_)

    assert refused.value.param == param
    assert f"{MOST + 1} characters" in str(refused.value)
    assert f"{CONTEXT} tokens" in str(refused.value)
    assert tokenizer.lengths == []


@pytest.mark.parametrize("request_", [completion("a" * MOST), chat("a" * (MOST - WRITTEN))], ids=["completion", "chat"])
async def test_one_that_may_fit_is(request_: Chat | Completion) -> None:
    tokenizer = Counting()
    with pytest.raises(PromptTooLong, match=r"tokens, which leaves no room"):
        await ask(tokenizer, request_)

    assert tokenizer.lengths == [MOST]


@pytest.mark.parametrize("request_", [completion("a" * (MOST + 1)), chat("a" * MOST)], ids=["completion", "chat"])
async def test_one_that_is_to_be_cut_is(request_: Chat | Completion) -> None:
    tokenizer = Counting()
    prompt = await ask(tokenizer, structs.replace(request_, truncation=Truncation(tokens=5)))

    assert len(tokenizer.lengths) == 1
    assert len(prompt.token_ids) == 5
