"""A route before it is built into an application."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any, Concatenate

from litestar import HttpMethod, Request, route
from litestar.handlers import HTTPRouteHandler
from litestar.types import ASGIApp

Answer = Callable[Concatenate[Request[Any, Any, Any], ...], Awaitable[ASGIApp]]


class Endpoint:
    """What answers the requests to some paths: a function of a request, and of parts of the server by their names."""

    def __init__(self, method: HttpMethod, paths: Sequence[str], answer: Answer) -> None:
        self.paths = paths
        self._method = method
        self._answer = answer

    def handler(self, parts: Mapping[str, Any]) -> HTTPRouteHandler:
        """With its parts, once and for all: Litestar's own injection would find each anew for every request, in a task
        of its own. Raises KeyError for a part that there is not."""
        _, *names = signature(self._answer).parameters
        answer = partial(self._answer, **{name: parts[name] for name in names})

        async def handle(request: Request[Any, Any, Any]) -> ASGIApp:
            return await answer(request)

        return route(list(self.paths), http_method=self._method)(handle)


def get(*paths: str) -> Callable[[Answer], Endpoint]:
    return partial(Endpoint, HttpMethod.GET, paths)


def post(*paths: str) -> Callable[[Answer], Endpoint]:
    return partial(Endpoint, HttpMethod.POST, paths)
