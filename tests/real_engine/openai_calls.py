"""What is asked through OpenAI's own client: the same of every server."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import openai
from openai import BaseModel

from tests.real_engine.answers import Json, assembled
from tests.real_engine.servers import API_KEY, MODEL

FRANCE = "The capital of France is"
TURNS = [
    {"role": "system", "content": "You answer in one sentence."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "What is the capital"}, {"type": "text", "text": "of France?"}],
    },
]
COUNTRY = {
    "type": "object",
    "properties": {"name": {"enum": ["France", "Japan"]}, "capital": {"enum": ["Paris", "Tokyo"]}},
    "required": ["name", "capital"],
    "additionalProperties": False,
}


class Call(NamedTuple):
    name: str
    fields: Mapping[str, Any]

    @property
    def is_chat(self) -> bool:
        return "messages" in self.fields

    def endpoint(self, client: openai.OpenAI | openai.AsyncOpenAI) -> Any:
        return client.chat.completions if self.is_chat else client.completions

    @property
    def shows_ids(self) -> bool:
        return "return_tokens_as_token_ids" in self.fields.get("extra_body", {})

    @property
    def is_streamable(self) -> bool:
        """Scores of a prompt are not streamed."""
        return "prompt_logprobs" not in self.fields.get("extra_body", {})

    def named(self, name: str) -> "Call":
        return self._replace(name=name)

    def but(self, **fields: Any) -> "Call":
        return self._replace(fields={**self.fields, **fields})


PLAIN = Call("completion", {"model": MODEL, "prompt": FRANCE, "max_tokens": 4, "temperature": 0})
PLAIN_CHAT = Call("chat", {"model": MODEL, "messages": TURNS, "max_tokens": 4, "temperature": 0})

SEVERAL = {"n": 3, "temperature": 1.5, "seed": 5, "max_tokens": 1}
"""One token each: further ones are scored by which others the engine happens to compute beside them."""
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}

CALLS = (
    PLAIN,
    PLAIN.named("echo and logprobs").but(echo=True, logprobs=2),
    PLAIN.named("echo of ids").but(echo=True, logprobs=1, extra_body={"return_tokens_as_token_ids": True}),
    PLAIN.named("token ids").but(logprobs=0, extra_body={"return_token_ids": True}),
    PLAIN.named("prompt logprobs").but(extra_body={"prompt_logprobs": 2}),
    PLAIN.named("several choices").but(**SEVERAL, logprobs=1),
    PLAIN.named("several prompts").but(**SEVERAL, prompt=["One, two,", FRANCE]),
    PLAIN.named("penalties and bias").but(
        frequency_penalty=0.5, presence_penalty=0.5, logit_bias={"330": 2.5}, stop=["zebra"], user="someone"
    ),
    PLAIN.named("sampling of vLLM's").but(
        temperature=0.7, seed=7, extra_body={"top_k": 20, "min_p": 0.02, "repetition_penalty": 1.1, "min_tokens": 2}
    ),
    PLAIN.named("choice").but(extra_body={"structured_outputs": {"choice": ["Paris", "London"]}}),
    PLAIN_CHAT,
    PLAIN_CHAT.named("chat logprobs").but(logprobs=True, top_logprobs=3),
    PLAIN_CHAT.named("chat of ids").but(logprobs=True, extra_body={"return_tokens_as_token_ids": True}),
    PLAIN_CHAT.named("chat token ids").but(extra_body={"return_token_ids": True}),
    PLAIN_CHAT.named("chat prompt logprobs").but(extra_body={"prompt_logprobs": 1}),
    PLAIN_CHAT.named("several chat choices").but(**SEVERAL, logprobs=True, top_logprobs=1),
    PLAIN_CHAT.named("chat by a schema").but(
        max_tokens=48, response_format={"type": "json_schema", "json_schema": {"name": "country", "schema": COUNTRY}}
    ),
    PLAIN_CHAT.named("chat goes on").but(
        messages=[*TURNS, {"role": "assistant", "content": "The capital is"}],
        extra_body={"add_generation_prompt": False, "continue_final_message": True, "echo": True},
    ),
)

FAULTS = (
    PLAIN.named("temperature").but(temperature=-1),
    PLAIN.named("logprobs").but(logprobs=100),
    PLAIN.named("max_tokens").but(max_tokens=5000),
    PLAIN.named("logit_bias").but(logit_bias={"999999": 1}),
    PLAIN.named("prompt").but(prompt="word " * 3000),
    PLAIN_CHAT.named("messages").but(messages=[]),
    PLAIN_CHAT.named("top_logprobs").but(top_logprobs=2),
    PLAIN_CHAT.named("response_format").but(response_format={"type": "json_schema"}),
    PLAIN_CHAT.named("chat_template").but(extra_body={"chat_template": "{{ messages }}"}),
    PLAIN_CHAT.named("structured_outputs").but(extra_body={"structured_outputs": {"regex": "(("}}),
)
"""Each is named for the field that is wrong."""
OTHER_MODELS = (
    PLAIN.named("another model").but(model="another"),
    PLAIN_CHAT.named("another model, chat").but(model="another"),
)


class Called(NamedTuple):
    """One server's answers to a call, as plain values: what is there, and not what the client fills in."""

    whole: Json
    joined: Json | None
    """The chunks as one; None where the call does not stream."""


Calls = Mapping[str, Called]
"""For each call by name."""

Refusals = Mapping[str, str]
"""For each call that is refused by name, the client's exception."""


def call(url: str) -> Calls:
    """All calls, one at a time."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key=API_KEY, max_retries=0) as client:
        return {each.name: Called(_whole(client, each), _joined(client, each)) for each in CALLS}


def refusals(url: str) -> Refusals:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=API_KEY, max_retries=0) as client:
        refused = {each.name: _refusal(each, client) for each in (*FAULTS, *OTHER_MODELS)}
        return {**refused, "another key": _refusal(PLAIN, client.with_options(api_key="another"))}


async def call_asynchronously(url: str) -> Calls:
    """The same, still one at a time."""
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=API_KEY, max_retries=0) as client:
        return {
            each.name: Called(await _whole_async(client, each), await _joined_async(client, each)) for each in CALLS
        }


def _whole(client: openai.OpenAI, call: Call) -> Json:
    return _plain(call.endpoint(client).create(**call.fields))


async def _whole_async(client: openai.AsyncOpenAI, call: Call) -> Json:
    return _plain(await call.endpoint(client).create(**call.fields))


def _joined(client: openai.OpenAI, call: Call) -> Json | None:
    if not call.is_streamable:
        return None
    with call.endpoint(client).create(**call.fields, **STREAMED) as chunks:
        return assembled([_plain(chunk) for chunk in chunks])


async def _joined_async(client: openai.AsyncOpenAI, call: Call) -> Json | None:
    if not call.is_streamable:
        return None
    async with await call.endpoint(client).create(**call.fields, **STREAMED) as chunks:
        return assembled([_plain(chunk) async for chunk in chunks])


def _refusal(call: Call, client: openai.OpenAI) -> str:
    try:
        _whole(client, call)
    except openai.APIStatusError as error:
        return type(error).__name__
    raise AssertionError(f"{call.name} was not refused")


def _plain(answer: BaseModel) -> Json:
    """Without the fingerprint, which is each server's own."""
    return {key: value for key, value in answer.to_dict().items() if key != "system_fingerprint"}
