"""The services as they are composed, over an engine that does what the test says."""

from typing import Any, NamedTuple

from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID, VOCAB_SIZE, ByteTokenizer
from adapters.outbound.mock_engine.scripted import Script, ScriptedEngine
from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from application.ports.engine import EngineCore
from application.requests import Chat, Completion, Conversation, TextOutput
from application.services.chat import CompleteChat
from application.services.completions import CompleteText
from application.services.generation import GenerateText
from application.services.prepare import Prepare
from application.services.render import Render
from application.services.response import ResponseStage
from application.services.running import Running
from application.services.text_generation import TextGeneration
from domain.chat import Message
from domain.generation import TextDelta
from domain.sampling import SamplingParams
from tests.fakes.metrics import RememberedMetrics

EOS = EOS_TOKEN_ID
CONTEXT = 100
"""Of `serve`'s engine, in tokens."""

Asked = Chat | Completion


class Served(NamedTuple):
    """The services, and what to ask about them afterwards."""

    engine: ScriptedEngine
    metrics: RememberedMetrics
    complete_text: CompleteText
    complete_chat: CompleteChat

    async def __call__(self, request: Asked) -> TextGeneration:
        if isinstance(request, Chat):
            choices = (await self.complete_chat(request)).choices
        else:
            choices = await self.complete_text(request)
        return choices.generations[0]

    @property
    def is_idle(self) -> bool:
        """Nothing runs, and each request that started has ended in one way."""
        return not self.engine.running and self.metrics.started == len(self.metrics.ended)


def serve(
    *scripts: Script, flag: bool = False, defaults: ModelDefaults | None = None, max_logprobs: int = 20
) -> Served:
    """`flag` is the server's --return-tokens-as-token-ids."""
    engine = ScriptedEngine(*scripts, max_model_len=CONTEXT)
    metrics = RememberedMetrics()
    return Served(engine, metrics, *services(engine, metrics, flag, defaults, max_logprobs))


def services(
    engine: EngineCore,
    metrics: RememberedMetrics,
    flag: bool = False,
    defaults: ModelDefaults | None = None,
    max_logprobs: int = 20,
) -> tuple[CompleteText, CompleteChat]:
    tokenizer = ByteTokenizer()
    options = ServerOptions(default_return_tokens_as_token_ids=flag)
    prepare = Prepare(
        Render(tokenizer, PlainChat()),
        defaults or ModelDefaults(eos_token_id=EOS),
        ModelLimits(vocab_size=VOCAB_SIZE, max_logprobs=max_logprobs),
        engine.max_model_len,
    )
    generate = GenerateText(engine, ResponseStage(tokenizer, options), metrics, Running())
    return CompleteText(prepare, generate), CompleteChat(prepare, generate, options)


def completion(
    prompt: str | list[int] = "ab", sampling: SamplingParams | None = None, request_id: str = "r", **output: Any
) -> Completion:
    return Completion(
        request_id=request_id,
        prompts=[prompt],
        sampling=sampling or SamplingParams(),
        output=TextOutput(**output),
    )


def chat(
    text: str = "ab", sampling: SamplingParams | None = None, max_tokens_field: str = "max_tokens", **output: Any
) -> Chat:
    return Chat(
        request_id="r",
        conversation=Conversation(messages=[Message("user", text)]),
        sampling=sampling or SamplingParams(),
        output=TextOutput(**output),
        max_tokens_field=max_tokens_field,
    )


async def read(generation: TextGeneration) -> list[TextDelta]:
    """All of it, closed as whoever receives one closes it."""
    try:
        return [delta async for delta in generation]
    finally:
        await generation.aclose()
