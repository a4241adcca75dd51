"""What is to be shown, as the service takes it. Knows no server option."""

from collections.abc import Iterable, Sequence
from itertools import chain, dropwhile

from adapters.inbound.http.openai.chat.lower import lower as lower_chat_request
from adapters.inbound.http.openai.chat.schema import ChatMessage, ChatRequest
from adapters.inbound.http.openai.completions.lower import lower as lower_completion_request
from adapters.inbound.http.openai.completions.schema import CompletionRequest
from adapters.inbound.http.openai.sampling import MOST_CHOICES, InvalidField
from adapters.inbound.http.vllm.derender.schema import (
    DerenderChunk,
    DerenderCompletion,
    Generated,
    GeneratedChoice,
    PromptScores,
    StreamState,
)
from application.model import ModelDefaults
from application.requests import Chat, Completion, Replay
from domain.detokenizer import ReadingState
from domain.generation import FinishReason, TokenDelta, TransferParams
from domain.logprobs import LogprobColumns

NOT_TOLD = -1
"""The id of a prompt's first tokens, where only the scores of the others tell what they are."""

Row = list[tuple[int, float]]
"""An id with its logprob for each rank, behind the token itself. One that is the token's own repeats it: what stands
there counts but once, and keeps the others in their places."""


def lower_chat(request: ChatRequest | None, request_id: str, defaults: ModelDefaults) -> Chat:
    """The request that led to it; where it was not sent along, one that says nothing."""
    return lower_chat_request(
        request or ChatRequest(messages=[ChatMessage(role="user", content="")]), request_id, defaults
    )


def lower_completion(request: CompletionRequest | None, request_id: str, defaults: ModelDefaults) -> Completion:
    return lower_completion_request(request or CompletionRequest(prompt=[0]), request_id, defaults)


def lower_responses(body: DerenderCompletion) -> list[Replay]:
    """One for each prompt."""
    responses = body.generate_responses
    if not responses:
        raise InvalidField("generate_responses must not be empty.", "generate_responses")
    counts: Sequence[int | None] = body.prompt_tokens or [None] * len(responses)
    prompts: Sequence[list[int] | None] = body.prompt_token_ids or [None] * len(responses)
    for param, given in (("prompt_tokens", counts), ("prompt_token_ids", prompts)):
        if len(given) != len(responses):
            raise InvalidField(f"{param} must be as many as generate_responses, {len(responses)}.", param)
    if len({len(response.choices) for response in responses}) > 1:
        raise InvalidField("generate_responses must all have as many choices.", "generate_responses")
    _check_count(sum(len(response.choices) for response in responses), "generate_responses")
    return [
        lower_response(response, count, prompt, "generate_responses")
        for response, count, prompt in zip(responses, counts, prompts, strict=True)
    ]


def lower_response(
    response: Generated, prompt_tokens: int | None, prompt_token_ids: list[int] | None, param: str = "generate_response"
) -> Replay:
    """Raises RequestError, with the field's name."""
    _check_count(len(response.choices), param)
    choices = sorted(response.choices, key=lambda choice: choice.index)
    if not choices or [choice.index for choice in choices] != list(range(len(choices))):
        raise InvalidField(f"{param} must have choices, with indexes from 0 on.", param)
    for choice in choices:
        if not choice.token_ids and choice.finish_reason is not FinishReason.ABORT:
            raise InvalidField(f"{param}: choice {choice.index} has no token_ids.", param)
        if choice.finish_reason is None:
            raise InvalidField(f"{param}: choice {choice.index} has no finish_reason.", param)
    return _replay(response, prompt_tokens, prompt_token_ids, param)


def _check_count(choices: int, param: str) -> None:
    if choices > MOST_CHOICES:
        raise InvalidField(f"{param} must have at most {MOST_CHOICES} choices in all, got {choices}.", param)


def lower_chunk(body: DerenderChunk) -> Replay:
    """Raises RequestError, with the field's name."""
    chunk = body.generate_chunk
    if len(chunk.choices) > 1:
        raise InvalidField("generate_chunk must have one choice at most.", "generate_chunk")
    return _replay(chunk, body.prompt_tokens, body.prompt_token_ids, "generate_chunk")


def cells(generated: Generated) -> int:
    """How many scores there are."""
    positions = chain.from_iterable(
        choice.logprobs.content or () for choice in generated.choices if choice.logprobs is not None
    )
    scores = sum(1 + len(position.top_logprobs) for position in positions)
    return scores + sum(len(score) for score in generated.prompt_logprobs or () if score)


def lower_state(state: StreamState | None) -> ReadingState | None:
    if state is None:
        return None
    return ReadingState(state.unread, state.context, state.text_offset, state.held, state.stopped_by, state.seen)


def _replay(
    generated: Generated,
    prompt_tokens: int | None,
    prompt_token_ids: list[int] | None,
    param: str,
) -> Replay:
    ids = generated.prompt_token_ids if prompt_token_ids is None else prompt_token_ids
    scores = generated.prompt_logprobs
    prompt_columns = None
    if scores is not None:
        rows = _prompt_rows(scores, param)
        prompt_columns = _columns(rows, [next(iter(score.values())).rank for score in scores if score], param)
        if ids is None or len(ids) != len(scores):
            ids = [NOT_TOLD] * (len(scores) - len(rows)) + [row[0][0] for row in rows]
    details = None if generated.usage is None else generated.usage.prompt_tokens_details
    deltas = [
        TokenDelta(
            choice.token_ids or [],
            _output_columns(choice, param),
            prompt_columns,
            choice.finish_reason,
            choice.stop_reason,
            cached_tokens=None if details is None else details.cached_tokens,
            transfer=TransferParams(generated.kv_transfer_params, generated.ec_transfer_params),
        )
        for choice in sorted(generated.choices, key=lambda choice: choice.index)
    ]
    return Replay(
        deltas=deltas,
        prompt_token_ids=ids,
        prompt_tokens=prompt_tokens,
        param=param,
    )


def _output_columns(choice: GeneratedChoice, param: str) -> LogprobColumns | None:
    if choice.logprobs is None or choice.logprobs.content is None:
        return None
    positions = choice.logprobs.content
    if [position.token_id for position in positions] != (choice.token_ids or []):
        raise InvalidField(f"{param}: the logprobs of choice {choice.index} are not those of its token_ids.", param)
    rows = [
        _row(
            position.token_id,
            position.logprob,
            ((other.token_id, other.logprob, other.rank) for other in position.top_logprobs),
        )
        for position in positions
    ]
    return _columns(rows, [position.rank for position in positions], param)


def _row(token_id: int, logprob: float, others: Iterable[tuple[int, float, int | None]]) -> Row:
    row = [(token_id, logprob)]
    for other_id, other_logprob, rank in others:
        if other_id != token_id:
            if rank == len(row) + 1:
                row.append(row[0])
            row.append((other_id, other_logprob))
    return row


def _prompt_rows(scores: PromptScores, param: str) -> list[Row]:
    """Of all tokens but those at the start that have no scores: the first, at least."""
    scored = list(dropwhile(lambda score: score is None, scores))
    if len(scored) == len(scores) or not all(scored):
        raise InvalidField(f"{param}: prompt_logprobs must be null for the first tokens, and only for them.", param)
    rows = []
    for score in scores:
        if score:
            token_id, first = next(iter(score.items()))
            rows.append(_row(token_id, first.logprob, ((key, one.logprob, one.rank) for key, one in score.items())))
    return rows


def _columns(rows: Sequence[Row], ranks: Sequence[int | None], param: str) -> LogprobColumns:
    """Rows of one width: shorter ones repeat the token itself, which counts but once."""
    width = max(map(len, rows), default=1)
    # those of one request differ by the token itself, which may be one of its own alternatives
    if width * len(rows) > 2 * sum(map(len, rows)):
        raise InvalidField(f"{param}: rows of logprobs must have as many alternatives as each other.", param)
    cells = list(chain.from_iterable([*row, *[row[0]] * (width - len(row))] for row in rows))
    return LogprobColumns(
        width, [token_id for token_id, _ in cells], [logprob for _, logprob in cells], [rank or 0 for rank in ranks]
    )
