"""From a request to what engines are asked. Knows no server option and no engine: it runs as well without a server."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from application.model import ModelDefaults, ModelLimits
from application.requests import Chat, Completion, Continuation, TextRequest, Truncation
from application.services.aside import aside
from application.services.render import Render
from domain.errors import RequestError
from domain.generation import GenerationRequest
from domain.logprobs import check_alternatives
from domain.prompt import Prompt, PromptNotServable, Room, check_in_vocabulary
from domain.sampling import OutOfRange, SamplingParams


class FieldNames(Struct, frozen=True):
    """What the caller calls what it sent: the `param` of an error."""

    prompt: str
    alternatives: str
    max_tokens: str


class SameChoices(RequestError):
    """Several choices were asked for that cannot differ."""


class TruncationTooLong(RequestError):
    """A prompt was to be cut to more than the model's context holds."""


class Prepared(Struct, frozen=True):
    """A prompt, and what is asked of an engine for each choice of it."""

    prompt: Prompt
    request: GenerationRequest


class Prepare:
    """Renders requests, and holds them to what this model takes."""

    def __init__(self, render: Render, defaults: ModelDefaults, limits: ModelLimits, max_model_len: int) -> None:
        self._render = render
        self._defaults = defaults
        self._limits = limits
        self._max_model_len = max_model_len

    async def chat(self, chat: Chat) -> Prepared:
        """Raises RequestError for what this model does not take, as the others do."""
        if chat.prompt_token_ids is None:
            param = "messages"
            prompt = await self._render.conversation(chat.conversation, self._room(chat, param))
        else:
            # Same as vLLM: what is known already is cut already, too.
            prompt, param = Prompt(chat.prompt_token_ids), "kv_transfer_params"
            chat = replace(chat, truncation=None)
        fields = FieldNames(prompt=param, alternatives="top_logprobs", max_tokens=chat.max_tokens_field)
        [prepared] = await self._prepared(chat, {chat.request_id: prompt}, fields)
        return prepared

    async def completion(self, completion: Completion) -> Sequence[Prepared]:
        """One for each prompt, in their order."""
        locate = completion.output.echo and completion.sampling.prompt_logprobs is not None
        room = self._room(completion, "prompt")
        prompts = await self._render.texts(completion.prompts, completion.add_special_tokens, locate, room)
        # Same as vLLM: the engine knows each prompt by its place.
        named = {f"{completion.request_id}-{index}": prompt for index, prompt in enumerate(prompts)}
        return await self._prepared(completion, named, FieldNames("prompt", "logprobs", "max_tokens"))

    async def tokens(self, continuation: Continuation) -> Prepared:
        prompt = Prompt(continuation.token_ids)
        fields = FieldNames(prompt="token_ids", alternatives="logprobs", max_tokens="max_tokens")
        [prepared] = await self._prepared(continuation, {continuation.request_id: prompt}, fields)
        return prepared

    def _room(self, request: TextRequest, param: str) -> Room | None:
        """What the request's prompts have to fit into as they are; None where they are cut to fit."""
        return None if request.truncation else Room(self._max_model_len, param)

    async def _prepared(
        self, request: TextRequest, prompts: Mapping[str, Prompt], fields: FieldNames
    ) -> list[Prepared]:
        banned = await aside(sum(map(len, request.bad_words)), lambda: self._render.banned(request.bad_words))
        sampling, scheduling = self._sampling(request, banned, fields), request.scheduling
        fitted = {
            request_id: self._fitted(prompt, request.truncation, fields) for request_id, prompt in prompts.items()
        }
        return [
            Prepared(
                prompt,
                GenerationRequest(
                    request_id=request_id,
                    prompt_token_ids=prompt.token_ids,
                    sampling=self._limited(sampling, prompt, fields),
                    priority=scheduling.priority,
                    cache_salt=scheduling.cache_salt,
                    session_id=scheduling.session_id,
                    data_parallel_rank=scheduling.data_parallel_rank,
                    adapter=request.adapter,
                ),
            )
            for request_id, prompt in fitted.items()
        ]

    def _sampling(self, request: TextRequest, banned: Sequence[Sequence[int]], fields: FieldNames) -> SamplingParams:
        """What is asked of the engine, but for what depends on the prompt."""
        sampling, limits = request.sampling, self._limits
        check_alternatives(fields.alternatives, sampling.logprobs, limits.max_logprobs, limits.vocab_size)
        check_alternatives("prompt_logprobs", sampling.prompt_logprobs, limits.max_logprobs, limits.vocab_size)
        for name in ("logprob_token_ids", "stop_token_ids", "allowed_token_ids", "logit_bias"):
            if token_ids := getattr(sampling, name):
                check_in_vocabulary(name, token_ids, limits.vocab_size)
        if request.output.n > 1 and sampling.is_greedy:
            raise SameChoices("n must be 1 with greedy sampling: all choices would be the same.", "n")
        return replace(
            sampling,
            eos_token_id=self._defaults.eos_token_id,
            stop_token_ids=self._stop_token_ids(sampling),
            ignored_stop_token_ids=self._defaults.stop_token_ids if sampling.ignore_eos else (),
            bad_words_token_ids=banned or None,
        )

    def _fitted(self, prompt: Prompt, truncation: Truncation | None, fields: FieldNames) -> Prompt:
        max_model_len = self._max_model_len
        if truncation is not None:
            if truncation.tokens > max_model_len:
                message = f"truncate_prompt_tokens of {truncation.tokens} is greater than the context, {max_model_len}."
                raise TruncationTooLong(message, "truncate_prompt_tokens")
            if truncation.tokens == 0:
                message = "truncate_prompt_tokens of 0 leaves nothing of the prompt."
                raise PromptNotServable(message, "truncate_prompt_tokens")
            kept = max_model_len - 1 if truncation.tokens < 0 else truncation.tokens
            prompt = prompt.truncated(kept, truncation.keeps_end)
        prompt.check(self._limits.vocab_size, max_model_len, fields.prompt)
        return prompt

    def _limited(self, sampling: SamplingParams, prompt: Prompt, fields: FieldNames) -> SamplingParams:
        if sampling.routed_experts_prompt_start > len(prompt.token_ids):
            message = f"routed_experts_prompt_start must be at most the prompt's {len(prompt.token_ids)} tokens."
            raise OutOfRange(message, "routed_experts_prompt_start")
        max_tokens = prompt.max_tokens(sampling.max_tokens, self._max_model_len, fields.max_tokens)
        if self._limits.max_output_tokens is not None:
            max_tokens = min(max_tokens, self._limits.max_output_tokens)
        return sampling if max_tokens == sampling.max_tokens else replace(sampling, max_tokens=max_tokens)

    def _stop_token_ids(self, sampling: SamplingParams) -> Sequence[int]:
        if sampling.ignore_eos:
            return sampling.stop_token_ids
        return list(dict.fromkeys([*sampling.stop_token_ids, *self._defaults.stop_token_ids]))
