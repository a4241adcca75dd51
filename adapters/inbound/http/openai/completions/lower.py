"""A completion request as the service takes it. Knows no server option."""

from adapters.inbound.http.openai.completions.schema import DEFAULT_MAX_TOKENS, CompletionRequest
from adapters.inbound.http.openai.sampling import (
    InvalidField,
    NotSupported,
    check_max_tokens,
    check_stream_options,
    lower_output,
    lower_sampling,
    refuse_unbuilt,
)
from application.model import ModelDefaults
from application.requests import Completion


def lower(body: CompletionRequest, request_id: str, defaults: ModelDefaults) -> Completion:
    """Raises RequestError, with the field's name, for what is not served or contradicts itself."""
    refuse_unbuilt(body)
    check_stream_options(body)
    echo = bool(body.echo)
    max_tokens = DEFAULT_MAX_TOKENS if body.max_tokens is None else body.max_tokens
    prompt_only = echo and max_tokens == 0
    if prompt_only:
        max_tokens = 1  # Same as vLLM: the engine samples at least one token, which is not shown.
    elif max_tokens == 0:
        raise InvalidField("max_tokens of 0 generates nothing: it needs echo.", "max_tokens")
    check_max_tokens(max_tokens, "max_tokens")
    return Completion(
        request_id=request_id,
        prompt=_one_prompt(body),
        sampling=lower_sampling(
            body,
            defaults,
            max_tokens=max_tokens,
            logprobs=body.logprobs,
            prompt_logprobs=body.logprobs if echo else None,
        ),
        output=lower_output(body, echo=echo, prompt_only=prompt_only),
    )


def _one_prompt(body: CompletionRequest) -> str | list[int]:
    prompt = body.prompt
    if not prompt:
        raise InvalidField("prompt must be given and must not be empty.", "prompt")
    if isinstance(prompt, str):
        return prompt
    ids = [item for item in prompt if isinstance(item, int)]
    if len(ids) != len(prompt):
        if ids:
            raise InvalidField("prompt mixes token ids with other prompts.", "prompt")
        raise NotSupported("Several prompts in one request are not supported by this server yet.", "prompt")
    return ids
