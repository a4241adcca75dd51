"""One request and its answer: what chat and completions do alike between the body and the bytes."""

import secrets
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from litestar.response.base import ASGIResponse

from adapters.inbound.http.departure import unless_gone
from adapters.inbound.http.endpoint import HttpRequest
from adapters.inbound.http.openai.answer import Answer
from adapters.inbound.http.openai.filling import FillRows
from adapters.inbound.http.openai.fragments import TokenDisplay
from adapters.inbound.http.openai.logprobs import LogprobDisplay
from adapters.inbound.http.openai.prompt_logprobs import PromptDisplay
from adapters.inbound.http.openai.sampling import InvalidField
from application.services.choices import Choices
from application.services.models import ServedModel
from domain.detokenizer import PieceOf

LONGEST_ID = 1024
"""Characters. Every chunk has it, and every choice at the engine."""


class TokenDisplays:
    """The two ways to show a token in logprobs, and the one in those of a prompt."""

    def __init__(self, piece_of: PieceOf, fill_rows: FillRows) -> None:
        self._by_text = LogprobDisplay(TokenDisplay(piece_of, show_token_ids=False, fill_rows=fill_rows))
        self._by_id = LogprobDisplay(TokenDisplay(piece_of, show_token_ids=True, fill_rows=fill_rows))
        self.of_prompts = PromptDisplay(piece_of, fill_rows)

    def of(self, choices: Choices) -> LogprobDisplay:
        return self._by_id if choices.show_token_ids else self._by_text


class AnswerFields(Protocol):
    """What a request says of its answer, whichever endpoint takes it."""

    model: str | None
    request_id: str | None
    return_token_ids: bool | None


def answer_to(
    request: HttpRequest, body: AnswerFields, prefix: str, model: ServedModel, fingerprint: str | None
) -> Answer:
    """An answer's own facts. Its id is the caller's, from header or body, even an empty one, else a random one. Same as
    vLLM.

    Raises InvalidField for an id that is too long."""
    callers = request.headers.get("x-request-id", body.request_id)
    request_id = secrets.token_hex(8) if callers is None else callers
    if len(request_id) > LONGEST_ID:
        raise InvalidField(
            f"request_id must have at most {LONGEST_ID} characters, got {len(request_id)}.", "request_id"
        )
    return Answer(
        id=prefix + request_id,
        created=int(time.time()),
        model=model.name,
        fingerprint=fingerprint,
        return_token_ids=bool(body.return_token_ids),
    )


async def whole(request: HttpRequest, choices: Choices, body: Coroutine[Any, Any, bytes]) -> ASGIResponse:
    """The answer in one piece: `body` runs the choices to their end, or to the client's leaving."""
    try:
        return ASGIResponse(body=await unless_gone(request.departure, body), media_type="application/json")
    finally:
        await choices.aclose()
