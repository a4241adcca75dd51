"""What stands between the server and its routes: a prefix to take off, keys to ask for, ids to give out."""

import hashlib
import hmac
import uuid
from collections.abc import Sequence

from litestar.types import ASGIApp, Message, Receive, Scope, Send
from litestar.utils import normalize_path

GUARDED = ("/v1", "/v2", "/inference")
"""Beginnings of paths that need a key. Same as vLLM."""

_UNAUTHORIZED = b'{"error":"Unauthorized"}'


def without_prefix(app: ASGIApp, prefix: str) -> ASGIApp:
    """Paths reach `app` without the prefix, whether a proxy took it off or not. Same as FastAPI's root_path."""
    root = normalize_path(prefix)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == root or path.startswith(f"{root}/"):
            scope["path"] = path[len(root) :] or "/"
            raw = scope["raw_path"]
            if raw.startswith(root.encode()):
                scope["raw_path"] = raw[len(root.encode()) :] or b"/"
        await app(scope, receive, send)

    return serve


def guarded(app: ASGIApp, keys: Sequence[str]) -> ASGIApp:
    """Requests to guarded paths must bear one of the keys, but for OPTIONS, which browsers ask before they send one."""
    digests = [_digest(key.encode()) for key in keys]

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # the path as the routes read it: more slashes must not lead around the guard
        is_open = scope.get("method") == "OPTIONS" or not normalize_path(scope["path"]).startswith(GUARDED)
        if is_open or _bears(scope, digests):
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_UNAUTHORIZED))]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": _UNAUTHORIZED, "more_body": False})

    return serve


def with_request_ids(app: ASGIApp) -> ASGIApp:
    """Every response has an X-Request-Id: the request's, or a random one."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                request_id = _header(scope, b"x-request-id") or uuid.uuid4().hex.encode()
                message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
            await send(message)

        await app(scope, receive, send_with_id)

    return serve


def _bears(scope: Scope, digests: Sequence[bytes]) -> bool:
    scheme, _, key = (_header(scope, b"authorization") or b"").partition(b" ")
    digest = _digest(key)
    # every key is compared, and as a digest: how long it takes tells nothing of any
    matches = [hmac.compare_digest(digest, one) for one in digests]
    return scheme.lower() == b"bearer" and any(matches)


def _header(scope: Scope, name: bytes) -> bytes | None:
    return next((value for key, value in scope["headers"] if key.lower() == name), None)


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()
