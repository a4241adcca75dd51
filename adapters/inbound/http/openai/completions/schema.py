"""`POST /v1/completions` as it comes in."""

from adapters.inbound.http.openai.sampling import Int64, SamplingFields, TokenId, Unbuilt

DEFAULT_MAX_TOKENS = 16
"""OpenAI's, and vLLM's."""


MOST_PROMPTS = 1024
"""In one request. Same as vLLM."""


class CompletionRequest(SamplingFields, kw_only=True):
    prompt: str | list[TokenId | str | list[TokenId]] | None = None
    max_tokens: Int64 | None = None
    logprobs: Int64 | None = None
    echo: bool | None = None

    best_of: Unbuilt = 1
    max_completion_tokens: Unbuilt = None
    messages: Unbuilt = None
    prompt_embeds: Unbuilt = None
    suffix: Unbuilt = None
    top_logprobs: Unbuilt = None
