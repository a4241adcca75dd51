"""A route before it is built into an application."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, Concatenate

from litestar import HttpMethod, route
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from adapters.inbound.http.departure import departure_of
from adapters.inbound.http.errors import failed
from domain.errors import RequestError

_HOST = re.compile(r"[\w!$&'()*+,;=\-.~:\[\]@%]*", re.ASCII)
"""What Litestar takes for one."""


class InvalidHost(RequestError):
    """What the request says that it is for is no host."""


class HttpRequest:
    """What there is to read of a request."""

    __slots__ = ("departure", "headers", "receive")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.receive = receive
        self.departure = departure_of(scope, receive)
        self.headers: Mapping[str, str] = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(list(scope["headers"]))
        }
        """By names in lower case. The first counts of several by one name."""


Answer = Callable[Concatenate[HttpRequest, ...], Awaitable[ASGIApp]]


class Endpoint:
    """What answers the requests to some paths: a function of a request, and of parts of the server by their names."""

    def __init__(self, method: HttpMethod, paths: Sequence[str], answer: Answer) -> None:
        self.paths = paths
        self.method = method
        self._answer = answer

    def app(self, parts: Mapping[str, Any]) -> ASGIApp:
        """What answers, its failures included. Raises KeyError for a part that there is not."""
        _, *names = signature(self._answer).parameters
        answer = partial(self._answer, **{name: parts[name] for name in names})

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                request = HttpRequest(scope, receive)
                if not _HOST.fullmatch(request.headers.get("host", "")):
                    raise InvalidHost("Invalid host header")
                response = await answer(request)
            except Exception as failure:
                response = failed(failure)
            await response(scope, receive, send)

        return serve

    def handler(self, parts: Mapping[str, Any]) -> HTTPRouteHandler:
        """As Litestar routes to it. Raises KeyError for a part that there is not.

        A middleware answers, which is as near to the routes as Litestar lets anyone: what it does between them and a
        handler, above all a task for each thing injected, costs as much as all else that a short request takes here.
        """
        serve = self.app(parts)
        answering = [lambda app: serve]  # noqa: ARG005 - Litestar's signature
        return route(list(self.paths), http_method=self.method, middleware=answering)(_unreached)


async def _unreached() -> None: ...


def get(*paths: str) -> Callable[[Answer], Endpoint]:
    return partial(Endpoint, HttpMethod.GET, paths)


def post(*paths: str) -> Callable[[Answer], Endpoint]:
    return partial(Endpoint, HttpMethod.POST, paths)
