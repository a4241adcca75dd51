"""A request's body: from bytes to a Struct, or to an error that says what is wrong with it."""

import re
from typing import TypeVar

import msgspec

from adapters.inbound.http.endpoint import HttpRequest
from adapters.inbound.http.errors import BodyTooLarge, ClientGone
from domain.errors import RequestError

T = TypeVar("T")

_UNKNOWN = re.compile(r"invalid (enum )?value .*", re.DOTALL)
_PATH = re.compile(r" - at `\$\.?(?P<path>.*)`$")


class BodyLimit(int):
    """The most bytes of body that are read; 0 is no limit."""


class MalformedBody(RequestError):
    """The body is not JSON, or not of the shape that the endpoint takes."""


async def read_body(request: HttpRequest, decoder: msgspec.json.Decoder[T], limit: BodyLimit) -> T:
    """Raises MalformedBody, BodyTooLarge, or ClientGone when the body never comes whole."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise MalformedBody("The content type must be application/json.")
    if limit and _announced_length(request) > limit:
        raise BodyTooLarge(f"The request body is larger than {limit} bytes.")
    body = bytearray()
    more = True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone("The client closed the connection.")
        if message["type"] == "http.request":
            body += message["body"]
            more = message["more_body"]
        if limit and len(body) > limit:
            raise BodyTooLarge(f"The request body is larger than {limit} bytes.")
    return decode_body(decoder, body)


def _announced_length(request: HttpRequest) -> int:
    """0 where there is none, or none that is a number: the bytes are counted as they come anyway."""
    try:
        return int(request.headers.get("content-length", 0))
    except ValueError:
        return 0


def decode_body(decoder: msgspec.json.Decoder[T], body: bytes | bytearray) -> T:
    """Never echoes the input, whatever is wrong with it."""
    try:
        body.decode()  # what nobody knows is skipped unread, and must be JSON all the same
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None
    except (msgspec.DecodeError, UnicodeError):
        raise MalformedBody("The request body is not valid JSON.") from None
    except RecursionError:
        raise MalformedBody("The request body is nested too deeply.") from None


def _explain(message: str) -> MalformedBody:
    """A type error in the caller's words: the field by its bare name, and where inside it the trouble is."""
    found = _PATH.search(message)
    if found is None:
        missing = re.search(r"missing required field `(\w+)`", message)
        if missing:
            return MalformedBody(f"{missing[1]} is required.", missing[1])
        return MalformedBody("The request body must be a JSON object.")
    path = found["path"]
    what = message[: found.start()].replace("`", "").lower().replace("expected", "must be", 1)
    what = _UNKNOWN.sub("not a value that is known", what)
    return MalformedBody(f"{path}: {what}.", re.split(r"[.\[]", path)[0])
