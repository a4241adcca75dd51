"""Answers of tokens that were generated elsewhere."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from application.model import ModelLimits
from application.options import ServerOptions
from application.ports.engine import TokenStream
from application.ports.metrics import Metrics
from application.ports.source import OnReady
from application.requests import Chat, Completion, Replay, TextRequest
from application.services.chat import Reply, reply
from application.services.choices import Choices
from application.services.prepare import Prepare
from application.services.response import OutputStart, ResponseStage
from domain.detokenizer import Detokenizer, ReadingState
from domain.errors import RequestError
from domain.generation import TextDelta, TokenDelta, TokenUsage, joined
from domain.logprobs import WHOLE_VOCABULARY
from domain.prompt import Prompt, check_in_vocabulary


class NotGeneratedHere(RequestError):
    """What was sent cannot have come of the request that it is said to have come of, or of this model."""


class Recorded(TokenStream):
    """What came of a request once."""

    def __init__(self, *deltas: TokenDelta) -> None:
        self._deltas = list(deltas)

    def listen(self, on_ready: OnReady) -> None:
        """It is all there."""

    def take(self) -> TokenDelta:
        if not self._deltas:
            raise StopAsyncIteration
        return self._deltas.pop(0)

    def close(self) -> None:
        self._deltas.clear()


class Uncounted(Metrics):
    """Nothing is generated here."""

    def request_started(self) -> None: ...

    def request_ended(self, reason: str, usage: TokenUsage) -> None: ...


class Chunk(Struct, frozen=True):
    """What one step of a choice brings to see, and what is to be known of it at the next."""

    choices: Choices
    delta: TextDelta
    state: ReadingState


class Derender:
    """Puts what was generated through the same response stage as what is generated here."""

    def __init__(
        self,
        prepare: Prepare,
        stage: ResponseStage,
        options: ServerOptions,
        limits: ModelLimits,
        max_model_len: int,
    ) -> None:
        self._prepare = prepare
        self._stage = stage
        self._options = options
        self._limits = limits
        self._max_model_len = max_model_len

    @property
    def tells_prompt_details(self) -> bool:
        return self._options.tells_prompt_details

    async def chat(self, chat: Chat, replay: Replay) -> Reply:
        """Raises RequestError for what this model cannot have generated, as the others do."""
        choices, _ = await self._open(chat, [replay], [Prompt(replay.prompt_token_ids or ())], None)
        await choices.start()
        return await self._reply(chat, choices)

    async def chat_chunk(self, chat: Chat, replay: Replay, state: ReadingState | None) -> tuple[Reply, Chunk]:
        chunk = await self._chunk(chat, replay, Prompt(replay.prompt_token_ids or ()), state)
        return await self._reply(chat, chunk.choices), chunk

    async def completion(self, completion: Completion, replays: Sequence[Replay]) -> Choices:
        """`replays` are one for each prompt."""
        prompts = [Prompt(replay.prompt_token_ids or ()) for replay in replays]
        if completion.output.echo:
            prompts = [one.prompt for one in await self._prepare.completion(completion)]
            told = [replay.prompt_token_ids for replay in replays]
            if len(prompts) != len(told) or any(map(_differ, told, prompts)):
                raise NotGeneratedHere("completion_request: the tokens are of other prompts.", "completion_request")
        choices, _ = await self._open(completion, replays, prompts, None)
        await choices.start()
        return choices

    async def completion_chunk(self, completion: Completion, replay: Replay, state: ReadingState | None) -> Chunk:
        prompt = Prompt(replay.prompt_token_ids or ())
        if completion.output.echo and state is None:
            prepared = [one.prompt for one in await self._prepare.completion(completion)]
            same = [one for one in prepared if not _differ(replay.prompt_token_ids, one)]
            if not same:
                raise NotGeneratedHere("completion_request: the tokens are of another prompt.", "completion_request")
            prompt = same[0]
        return await self._chunk(completion, replay, prompt, state)

    async def _reply(self, chat: Chat, choices: Choices) -> Reply:
        text = (await self._prepare.chat(chat)).prompt.text if chat.return_prompt_text else None
        return reply(chat, choices, text, self._options.response_role)

    async def _chunk(self, request: TextRequest, replay: Replay, prompt: Prompt, state: ReadingState | None) -> Chunk:
        choices, reader = await self._open(request, [replay], [prompt], state)
        await choices.start()
        deltas = [delta async for _, delta in choices]
        return Chunk(choices, joined(deltas), reader.state)

    async def _open(
        self, request: TextRequest, replays: Sequence[Replay], prompts: Sequence[Prompt], state: ReadingState | None
    ) -> tuple[Choices, Detokenizer]:
        """The choices, and what reads the last of them."""
        output = replace(request.output, n=len(replays[0].deltas))
        choices = self._stage.choices(output)
        for replay, prompt in zip(replays, prompts, strict=True):
            self._check(replay)
            scored = any(delta.prompt_logprobs is not None for delta in replay.deltas)
            alternatives = request.sampling.prompt_logprobs
            asked = WHOLE_VOCABULARY if alternatives is None else alternatives
            sampling = replace(request.sampling, prompt_logprobs=asked if scored else None)
            if state is None:
                start = await self._stage.start(prompt, sampling, output)
            else:
                start = OutputStart(prompt, None, None, b"", 0)
            for delta in replay.deltas:
                reader = self._stage.reader(start, sampling, output)
                if state is not None:
                    reader.resume(state)
                generation = self._stage.choice(start, reader, output, Recorded(*_steps(delta)), Uncounted())
                if replay.prompt_tokens is not None:
                    generation.prompt_tokens = replay.prompt_tokens
                choices.add(generation)
        return choices, reader

    def _check(self, replay: Replay) -> None:
        prompt = replay.prompt_token_ids or ()
        for param, token_ids in [
            ("prompt_token_ids", prompt),
            *((replay.param, one.token_ids) for one in replay.deltas),
        ]:
            if len(token_ids) > self._max_model_len:
                message = f"{param}: {len(token_ids)} tokens are more than the model's context, {self._max_model_len}."
                raise NotGeneratedHere(message, param)
            told = [token_id for token_id in token_ids if token_id >= 0]
            check_in_vocabulary(param, told, self._limits.vocab_size)


def _steps(delta: TokenDelta) -> list[TokenDelta]:
    """No token stopped what a stop string did: all of them are text, and the string is looked for in it."""
    if not isinstance(delta.stop_reason, str):
        return [delta]
    tokens = replace(delta, finish_reason=None, stop_reason=None)
    return [tokens, TokenDelta([], finish_reason=delta.finish_reason, stop_reason=delta.stop_reason)]


def _differ(told: Sequence[int] | None, prompt: Prompt) -> bool:
    return told is not None and list(told) != list(prompt.token_ids)
