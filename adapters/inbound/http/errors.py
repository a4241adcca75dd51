"""Failure to answer: one table, used for an HTTP response before the first byte and for an SSE event after it."""

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp, ExceptionHandlersMap

from application.ports.engine import EngineUnavailable
from application.ports.lora import AdapterNotFound
from application.services.models import ModelNotFound
from domain.errors import EngineFailure, RequestError

logger = logging.getLogger("northbound")

LONGEST_MESSAGE = 500


class BodyTooLarge(RequestError):
    """The request body is over the server's limit."""


class NotPermitted(RequestError):
    """The server has the path and was not told to serve it."""


class ClientGone(Exception):
    """The client closed the connection before there was anything to answer."""


class Verdict(msgspec.Struct, frozen=True):
    """The status of a failure, and what OpenAI's envelope calls it."""

    status: int
    type: str


VERDICTS: Mapping[type[Exception], Verdict] = {
    RequestError: Verdict(400, "BadRequestError"),
    ModelNotFound: Verdict(404, "NotFoundError"),
    AdapterNotFound: Verdict(404, "NotFoundError"),
    BodyTooLarge: Verdict(413, "RequestEntityTooLargeError"),
    NotPermitted: Verdict(403, "PermissionDeniedError"),
    EngineUnavailable: Verdict(503, "ServiceUnavailableError"),
    EngineFailure: Verdict(500, "InternalServerError"),
    ClientGone: Verdict(499, "ClientClosedRequestError"),
}
"""Looked up along an error's MRO, so a new error needs no new row."""

_HTTP_TYPES = {404: "NotFoundError", 405: "MethodNotAllowedError"}


class ErrorObject(msgspec.Struct):
    message: str
    type: str
    param: str | None
    code: int


class ErrorEnvelope(msgspec.Struct):
    """OpenAI's, of every error."""

    error: ErrorObject


def describe(failure: Exception) -> tuple[int, bytes]:
    """The status of a failure and OpenAI's error object for it, as JSON bytes.

    What is in no family is a defect of this server: it is logged, and the client learns no more than that.
    """
    message, param = str(failure), getattr(failure, "param", None)
    verdict = next((VERDICTS[kind] for kind in type(failure).__mro__ if kind in VERDICTS), None)
    if verdict is None and isinstance(failure, HTTPException) and failure.status_code < 500:
        verdict = Verdict(failure.status_code, _HTTP_TYPES.get(failure.status_code, "BadRequestError"))
        message = failure.detail
    if verdict is None:
        logger.error("unexpected failure", exc_info=failure)
        verdict, message = Verdict(500, "InternalServerError"), "Internal server error"
    error = ErrorObject(message[:LONGEST_MESSAGE], verdict.type, param, verdict.status)
    return verdict.status, msgspec.json.encode(ErrorEnvelope(error))


def failed(failure: Exception) -> ASGIApp:
    """The answer that a failure is."""
    status, body = describe(failure)
    return ASGIResponse(body=body, status_code=status, media_type="application/json")


def respond(_: Request[Any, Any, Any], failure: Exception) -> Response[bytes]:
    """Litestar's exception handler, for what no endpoint is asked."""
    status, body = describe(failure)
    headers = failure.headers if isinstance(failure, HTTPException) else None  # a 405 says what is allowed
    return Response(body, status_code=status, media_type="application/json", headers=headers)


EXCEPTION_HANDLERS: ExceptionHandlersMap = dict.fromkeys([*VERDICTS, HTTPException, Exception], respond)
