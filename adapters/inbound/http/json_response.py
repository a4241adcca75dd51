"""An answer in one piece, as JSON."""

from typing import Any

import msgspec
from litestar.response.base import ASGIResponse

_encode = msgspec.json.Encoder().encode


def json_response(content: Any) -> ASGIResponse:
    """With status 200."""
    return ASGIResponse(body=_encode(content), media_type="application/json")
