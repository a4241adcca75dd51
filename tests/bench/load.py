"""Puts load on a frontend and tells how it was served: a client of our own, of few parts, in one process."""

import asyncio
import itertools
import json
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httptools
from msgspec import Struct

from tests.bench.workloads import Workload


class Load(Struct, frozen=True, kw_only=True):
    """How a workload was served. Times are None if there was no answer at all."""

    tokens: int
    """Of all answers, as the frontend counts them."""
    seconds: float
    failures: int
    """Requests that were not answered to their end."""
    ttft_ms_p50: float | None
    ttft_ms_p99: float | None
    itl_ms_p50: float | None
    itl_ms_p99: float | None


class Answer(Struct):
    """What came of one request, and when. Times are monotonic seconds."""

    asked: float
    status: int = 0
    parts: list[tuple[float, bytes]] = []
    ended: bool = False


async def put_load(address: str, workload: Workload, seed: int) -> Load:
    """`address` such as `http://127.0.0.1:8000`."""
    host, _, port = address.removeprefix("http://").partition(":")
    requests = [_request(workload.path, body) for body in workload.bodies(seed)]
    waiting = iter(requests)
    start = time.monotonic()
    async with asyncio.TaskGroup() as group:
        streams = [group.create_task(_stream(host, int(port), waiting)) for _ in range(workload.streams)]
        beside = [
            group.create_task(_stream(host, int(port), iter([_request(workload.path, body)])))
            for body in workload.bodies_beside(seed)
        ]
    seconds = time.monotonic() - start
    answers = [answer for stream in streams for answer in stream.result()]
    failures = sum(not _is_whole(answer) for other in beside for answer in other.result())
    return summary(answers, seconds, failures)


def summary(answers: Sequence[Answer], seconds: float, failures: int = 0) -> Load:
    """Of streamed answers; `failures` are those of other requests."""
    tokens = 0
    ttft: list[float] = []
    gaps: list[float] = []
    for answer in answers:
        times, counted = _chunks(answer)
        tokens += counted
        failures += not (times and _is_whole(answer))
        if times:
            ttft.append(1000 * (times[0] - answer.asked))
            gaps += [1000 * (after - before) for before, after in itertools.pairwise(times)]
    return Load(
        tokens=tokens,
        seconds=seconds,
        failures=failures,
        ttft_ms_p50=percentile(ttft, 50),
        ttft_ms_p99=percentile(ttft, 99),
        itl_ms_p50=percentile(gaps, 50),
        itl_ms_p99=percentile(gaps, 99),
    )


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The least value that as many are not above."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)] if values else None


def _chunks(answer: Answer) -> tuple[list[float], int]:
    """When each chunk came that has something of the answer, and how many tokens there were."""
    times: list[float] = []
    tokens = 0
    rest = b""
    for received, part in answer.parts:
        *events, rest = (rest + part).split(b"\n\n")
        for event in events:
            if not event.startswith(b"data: {"):
                continue
            chunk = json.loads(event[6:])
            choices = chunk.get("choices") or ()
            # The head of a chat answer comes with the first token, not instead of it.
            if choices and "role" not in choices[0].get("delta", ()):
                times.append(received)
            tokens = max(tokens, (chunk.get("usage") or {}).get("completion_tokens", 0))
    return times, tokens


def _is_whole(answer: Answer) -> bool:
    return answer.status == 200 and answer.ended


def _request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {len(content)}"
    return head.encode() + b"\r\n\r\n" + content


async def _stream(host: str, port: int, waiting: Iterator[bytes]) -> list[Answer]:
    """Asks one request after the other, over one connection as long as it is kept."""
    loop = asyncio.get_running_loop()
    answers: list[Answer] = []
    connection: _Connection | None = None
    for request in waiting:
        if connection is None or connection.is_lost:
            try:
                _, connection = await loop.create_connection(_Connection, host, port)
            except OSError:
                answers.append(Answer(time.monotonic()))
                continue
        answers.append(await connection.ask(request))
    if connection is not None:
        connection.close()
    return answers


class _Connection(asyncio.Protocol):
    """Keeps what comes, and reads it only once all is over: reading takes time that belongs to the frontend."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._done: asyncio.Future[None] | None = None
        self.is_lost = False

    async def ask(self, request: bytes) -> Answer:
        self._answer = Answer(time.monotonic())
        self._parser = httptools.HttpResponseParser(self)
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        await self._done
        return self._answer

    def close(self) -> None:
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        self._received = time.monotonic()
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._finish()

    def on_body(self, body: bytes) -> None:
        self._answer.parts.append((self._received, body))

    def on_message_complete(self) -> None:
        self._answer.status = self._parser.get_status_code()
        self._answer.ended = True
        if not self._parser.should_keep_alive():
            self.is_lost = True
            self._transport.close()
        self._finish()

    def _finish(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)
