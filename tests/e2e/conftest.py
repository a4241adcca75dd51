"""Servers in these tests run as they do when they serve: on uvloop."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

LoopFactories = Mapping[str, Callable[[], asyncio.AbstractEventLoop]]


def pytest_asyncio_loop_factories(item: pytest.Item) -> LoopFactories:
    if item.path.name.startswith("test_http_"):
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop}
