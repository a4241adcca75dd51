"""Asking the whole application in process, and reading what comes as a client does: from bytes."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from litestar import Litestar

from adapters.bootstrap.app import build_app
from adapters.bootstrap.container import Container
from adapters.inbound.http.body import BodyLimit
from adapters.outbound.mock_engine.scripted import ScriptedEngine, Step
from application.model import ModelDefaults, ModelLimits
from application.options import ServerOptions
from application.ports.chat_renderer import ChatRenderer
from application.ports.engine import EngineCore, TokenStream
from domain.chat import Message, Rendering
from domain.generation import GenerationRequest
from tests.exactness.streams import Stream
from tests.exactness.vocabularies import Vocabulary

PATHS = {True: "/v1/chat/completions", False: "/v1/completions"}
LISTS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")


class SwappedEngine(EngineCore):
    """A scripted engine whose scripts are changed between requests."""

    max_model_len = 8192
    version = "scripted"
    is_alive = True

    def __init__(self) -> None:
        self._scripted = ScriptedEngine([])

    def play(self, scripts: Sequence[Sequence[Step]]) -> None:
        self._scripted = ScriptedEngine(*scripts)

    async def submit(self, request: GenerationRequest) -> TokenStream:
        return await self._scripted.submit(request)

    async def aclose(self) -> None:
        await self._scripted.aclose()


class Verbatim(ChatRenderer):
    """The last message alone."""

    def render(self, messages: Sequence[Message], rendering: Rendering) -> str:
        return str(messages[-1].content)


class Choice(NamedTuple):
    """What of one choice was got at once."""

    text: str
    token_ids: list[int] | None
    rows: list[Any] | None
    """As in the reference; None where there are none."""
    finish_reason: str | None
    stop_reason: int | str | None
    prompt_token_ids: list[int] | None


class Answer(NamedTuple):
    """By choice: the pieces in which it came, one if it was not streamed."""

    choices: dict[int, list[Choice]]
    usage: tuple[int, int]
    """Prompt tokens and completion tokens."""
    prompt_logprobs: list[Any]
    """By choice, maps as pairs in order; None where there are none."""


class Client:
    """Of two servers over one vocabulary: one with the flag --return-tokens-as-token-ids, one without."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._engine = SwappedEngine()
        self._apps = {flag: self._build(vocabulary, flag) for flag in (True, False)}

    async def ask(self, stream: Stream, sizes: Sequence[int], *, shows_ids: bool, is_streamed: bool) -> Answer:
        """From an engine whose steps bring so many tokens."""
        self._engine.play([stream.script(prompt, sizes) for prompt in range(len(stream.prompts))])
        body = request_body(stream, is_streamed)
        if not stream.is_by_flag:
            body["return_tokens_as_token_ids"] = shows_ids
        app = self._apps[shows_ids is stream.is_by_flag]
        status, content = await exchange(app, PATHS[stream.is_chat], json.dumps(body).encode())
        assert status == 200, content
        return joined(content) if is_streamed else whole(content)

    def _build(self, vocabulary: Vocabulary, flag: bool) -> Litestar:
        return build_app(
            Container(
                engine=self._engine,
                tokenizer=vocabulary.tokenizer,
                chat_renderer=Verbatim(),
                options=ServerOptions(default_return_tokens_as_token_ids=flag),
                defaults=ModelDefaults(),
                limits=ModelLimits(vocab_size=vocabulary.size, max_logprobs=-1),
                names=["m"],
                root="m",
                body_limit=BodyLimit(1 << 20),
            )
        )


def request_body(stream: Stream, is_streamed: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "max_tokens": 0 if stream.prompt_only else 100,
        "stop": stream.stop,
        "min_tokens": 0 if stream.prompt_only else stream.min_tokens,
        "skip_special_tokens": stream.skip_special_tokens,
        "return_token_ids": stream.return_token_ids,
        "logprob_token_ids": stream.logprob_token_ids,
        "prompt_logprobs": stream.prompt_logprobs,
    }
    if stream.is_chat:
        body |= {"messages": [{"role": "user", "content": stream.prompts[0]}]}
        body |= {} if stream.alternatives is None else {"logprobs": True, "top_logprobs": stream.alternatives}
    else:
        prompt = stream.prompts if len(stream.prompts) > 1 else stream.prompts[0]
        body |= {"prompt": prompt, "echo": stream.echo, "logprobs": stream.alternatives}
    if is_streamed:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
        body["prompt_logprobs"] = None  # refused with a stream
    return body


async def exchange(app: Litestar, path: str, body: bytes) -> tuple[int, bytes]:
    """Status and content. The client stays to the end."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    to_send = [{"type": "http.request", "body": body, "more_body": False}]
    messages: list[Any] = []

    async def receive() -> Any:
        return to_send.pop() if to_send else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, receive, send)  # type: ignore[arg-type]  # Litestar spells the same protocol in types of its own
    return messages[0]["status"], b"".join(message.get("body", b"") for message in messages)


def whole(content: bytes) -> Answer:
    body = _parse(content)
    usage = body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]
    choices = {choice["index"]: [_choice(choice, choice, body)] for choice in body["choices"]}
    scores = [(choice if "text" in choice else body)["prompt_logprobs"] for choice in body["choices"]]
    return Answer(choices, usage, [each and [place and list(place.items()) for place in each] for each in scores])


def joined(content: bytes) -> Answer:
    """The chunks of each choice, chat's first left out: it has the role, and none of the answer."""
    frames = content.split(b"\n\n")
    assert frames[-2:] == [b"data: [DONE]", b""], content
    *chunks, closing = [_parse(frame.removeprefix(b"data: ")) for frame in frames[:-2]]
    assert closing["choices"] == []
    choices: dict[int, list[Choice]] = {}
    opening = None
    if "delta" in chunks[0]["choices"][0]:
        opening = chunks.pop(0)
        assert opening["choices"] == [
            {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        ]
    for chunk in chunks:
        [choice] = chunk["choices"]
        choices.setdefault(choice["index"], []).append(_choice(choice, {"stop_reason": None} | choice, opening))
    return Answer(choices, (closing["usage"]["prompt_tokens"], closing["usage"]["completion_tokens"]), [])


def _choice(choice: Any, ended: Any, head: Any) -> Choice:
    if "text" in choice:
        text, prompt_token_ids = choice["text"], choice["prompt_token_ids"]
    else:
        text, prompt_token_ids = choice.get("message", choice.get("delta"))["content"], head["prompt_token_ids"]
    return Choice(
        text, choice["token_ids"], _rows(choice["logprobs"]), choice["finish_reason"], ended["stop_reason"],
        prompt_token_ids,
    )  # fmt: skip


def _rows(logprobs: Any) -> list[Any] | None:
    if logprobs is None:
        return None
    if "content" in logprobs:
        return list(logprobs["content"])
    tops = [None if top is None else list(top.items()) for top in logprobs["top_logprobs"]]
    return list(zip(logprobs["tokens"], logprobs["token_logprobs"], tops, logprobs["text_offset"], strict=True))


def _parse(content: bytes) -> Any:
    return json.loads(content, object_pairs_hook=_unique, parse_constant=_refuse)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    assert len(made) == len(pairs), f"a key stands twice: {[key for key, _ in pairs]}"
    return made


def _refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")
