"""What of the scores is shown: what the request asked for, else all that came."""

from collections.abc import Sequence

from adapters.inbound.http.openai.chat.encode import ChatRows
from adapters.inbound.http.openai.chat.lower import prompt_logprobs as chat_prompt_logprobs
from adapters.inbound.http.openai.chat.lower import top_logprobs
from adapters.inbound.http.openai.chat.schema import ChatRequest
from adapters.inbound.http.openai.completions.encode import CompletionRows
from adapters.inbound.http.openai.completions.lower import prompt_logprobs as completion_prompt_logprobs
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.exchange import TokenDisplays
from application.requests import Replay
from application.services.choices import Choices
from domain.logprobs import WHOLE_VOCABULARY


def chat_rows(request: ChatRequest | None, replay: Replay, choices: Choices, displays: TokenDisplays) -> ChatRows:
    asks = request is not None and request.logprobs and request.logprob_token_ids is None
    alternatives = top_logprobs(request) if request is not None and asks else WHOLE_VOCABULARY
    prompt_alternatives = None if request is None else chat_prompt_logprobs(request)
    return ChatRows(
        display=displays.of(choices),
        prompt_display=displays.of_prompts,
        alternatives=alternatives if _has_rows([replay]) else None,
        prompt_alternatives=WHOLE_VOCABULARY if prompt_alternatives is None else prompt_alternatives,
    )


def completion_rows(
    request: CompletionRequest | None, replays: Sequence[Replay], choices: Choices, displays: TokenDisplays
) -> CompletionRows:
    alternatives = None if request is None else request.logprobs
    prompt_alternatives = None if request is None else completion_prompt_logprobs(request)
    shown = WHOLE_VOCABULARY if alternatives is None else alternatives
    chosen = request is not None and request.logprob_token_ids is not None
    return CompletionRows(
        display=displays.of(choices),
        prompt_display=displays.of_prompts,
        alternatives=shown if _has_rows(replays) else None,
        output_alternatives=WHOLE_VOCABULARY if chosen else shown,
        prompt_alternatives=WHOLE_VOCABULARY if prompt_alternatives is None else prompt_alternatives,
    )


def _has_rows(replays: Sequence[Replay]) -> bool:
    return any(delta.logprobs is not None for replay in replays for delta in replay.deltas)
