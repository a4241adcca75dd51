"""Calls of engines' own methods."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

from adapters.outbound.vllm_engine.wire import UtilityOutput, UtilityRequest
from application.ports.lora import AdapterNotFound, AdapterNotLoaded
from domain.errors import EngineFailure
from domain.lora import LoraAdapter

ADD_LORA: Final = "add_lora"


class EngineCalls:
    """Calls that wait for their replies. A reply is matched by the id of its call, of which each engine has its own."""

    def __init__(self, send: Callable[[bytes, UtilityRequest], None]) -> None:
        """`send` is given an engine's identity; when it raises, the call does."""
        self._send = send
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[UtilityOutput | EngineFailure]] = {}

    async def call(self, engines: Sequence[bytes], method: str, *args: Any) -> list[UtilityOutput]:
        """The replies of all these engines, in their order. Raises what `fail` is given meanwhile."""
        loop = asyncio.get_running_loop()
        called = {next(self._ids): engine for engine in engines}
        waiting = {call_id: loop.create_future() for call_id in called}
        self._waiting |= waiting
        try:
            for call_id, engine in called.items():
                self._send(engine, UtilityRequest(0, call_id, method, args))
            replies = await asyncio.gather(*waiting.values())
        finally:
            for call_id in waiting:
                self._waiting.pop(call_id, None)
        return [_answered(reply) for reply in replies]

    def settle(self, output: UtilityOutput) -> None:
        """A reply has come: perhaps to nobody, who waited no longer."""
        reply = self._waiting.get(output.call_id)
        if reply is not None and not reply.done():
            reply.set_result(output)

    def fail(self, failure: EngineFailure) -> None:
        """No more replies come."""
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_result(failure)


def _answered(reply: UtilityOutput | EngineFailure) -> UtilityOutput:
    if isinstance(reply, EngineFailure):
        raise reply
    return reply


def loading_failure(reply: UtilityOutput, adapter: LoraAdapter) -> Exception | None:
    """What an engine says is wrong with an adapter that it was to load."""
    said = reply.failure_message
    if said is None:
        return None
    if f"No adapter found for {adapter.path}" in said:
        return AdapterNotFound("There is no adapter at the path.", "lora_path")
    return AdapterNotLoaded(said.removeprefix(f"Call to {ADD_LORA} method failed: "))
