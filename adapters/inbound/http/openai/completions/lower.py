"""A completion request as the service takes it. Knows no server option."""

from adapters.inbound.http.openai.completions.schema import DEFAULT_MAX_TOKENS, MOST_PROMPTS, CompletionRequest
from adapters.inbound.http.openai.headers import NO_HEADERS, SchedulingHeaders
from adapters.inbound.http.openai.sampling import (
    MOST_CHOICES,
    InvalidField,
    check_max_tokens,
    check_stream,
    lower_output,
    lower_sampling,
    lower_scheduling,
    lower_truncation,
    refuse_unbuilt,
)
from application.model import ModelDefaults
from application.requests import Completion
from domain.lora import LoraAdapter


def lower(
    body: CompletionRequest,
    request_id: str,
    defaults: ModelDefaults,
    headers: SchedulingHeaders = NO_HEADERS,
    adapter: LoraAdapter | None = None,
) -> Completion:
    """Raises RequestError, with the field's name, for what is not served or contradicts itself."""
    refuse_unbuilt(body)
    check_stream(body)
    echo = bool(body.echo)
    max_tokens = DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens
    prompt_only = echo and max_tokens == 0
    if prompt_only:
        max_tokens = 1  # Same as vLLM: the engine samples at least one token, which is not shown.
    elif max_tokens == 0:
        raise InvalidField("max_tokens of 0 generates nothing: it needs echo.", "max_tokens")
    check_max_tokens(max_tokens, "max_tokens")
    if prompt_only and body.logprob_token_ids is not None:
        raise InvalidField("logprob_token_ids needs output tokens: max_tokens is 0.", "logprob_token_ids")
    prompts, output = _prompts(body.prompt), lower_output(body, echo=echo, prompt_only=prompt_only)
    if len(prompts) * output.n > MOST_CHOICES:
        raise InvalidField(f"n choices of each prompt must be at most {MOST_CHOICES} in all.", "n")
    return Completion(
        request_id=request_id,
        prompts=prompts,
        sampling=lower_sampling(
            body,
            defaults,
            max_tokens=max_tokens,
            logprobs=body.logprobs,
            echoed_logprobs=body.logprobs if echo else None,
        ),
        bad_words=body.bad_words or (),
        truncation=lower_truncation(body),
        add_special_tokens=body.add_special_tokens is not False,
        scheduling=lower_scheduling(body, headers),
        adapter=adapter,
        output=output,
    )


def prompt_logprobs(body: CompletionRequest) -> int | None:
    """How many alternatives each scored position of the prompt has; None when no scores were asked for."""
    return body.logprobs if body.prompt_logprobs is None and body.echo else body.prompt_logprobs


def _prompts(prompt: str | list[int | str | list[int]] | None) -> list[str | list[int]]:
    if not prompt:
        raise InvalidField("prompt must be given and must not be empty.", "prompt")
    if isinstance(prompt, str):
        return [prompt]
    token_ids = [item for item in prompt if isinstance(item, int)]
    if len(token_ids) == len(prompt):
        return [token_ids]
    prompts = [item for item in prompt if not isinstance(item, int)]
    if len({type(item) for item in prompt}) > 1:
        raise InvalidField("prompt mixes texts, token ids or lists of token ids.", "prompt")
    if len(prompts) > MOST_PROMPTS:
        raise InvalidField(f"prompt takes at most {MOST_PROMPTS} prompts, got {len(prompts)}.", "prompt")
    return prompts
