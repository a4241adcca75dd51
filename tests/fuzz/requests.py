"""Requests to chat and completions: built from what the routes read, and broken at random."""

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import inspect

from tests.fuzz.values import Values, anything, of, texts
from tests.http.serving import CHAT, ENDPOINTS, with_logprobs
from tests.http.test_fields import BUILT, SCHEMAS, UNBUILT

BODY_LIMIT = 1 << 20

CONVERSATIONS = [
    [{"role": "user", "content": "hi"}],
    [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "é"}]}],
    [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "a", "reasoning": "r"}],
]
PROMPTS = ["hi", "🐱", [0xC3, 104, 105], ["a", "bc"], [[104], [105, 106]], [260]]
TEMPLATES = [
    "{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}",
    "{{ messages[7].content.x }}",
    "{{ 1 / 0 }}",
    "{% for %}",
    "{{ raise_exception('no') }}",
    "{% set kept = namespace() %}{{ kept.a.b }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ '\\ud83d' }}",
    "",
]
BESIDE: dict[str, list[Any]] = {
    "chat_template": TEMPLATES,
    "chat_template_kwargs": [{"enable_thinking": True, "x": [1]}, {"messages": []}, {"chat_template": "x"}],
    "continue_final_message": [True],
    "documents": [[{"title": "t", "text": "x"}]],
    "stream": [True],
    "stream_options": [{"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}],
    "n": [2, 3],
    "kv_transfer_params": [{"a": [{"b": None}]}],
    "max_tokens": [0, 1, 3],
    "reasoning_effort": ["low", "none"],
}
"""Values that are of more interest than those that any server takes."""

HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "x-request-id": st.sampled_from(["", "r", "é", "x" * 1024, "x" * 5000, '"\\']),
        "x-session-id": st.sampled_from(["", "s", "é"]),
        "x-vllm-priority": st.sampled_from(["0", "-1", "x", "", "9" * 30, "9" * 5000, "1e3", "٣"]),
        "x-data-parallel-rank": st.sampled_from(["0", "1", "-1", "x", "9" * 50, "9" * 4000]),
        "content-encoding": st.sampled_from(["gzip", "identity", "br", "x"]),
        "content-type": st.sampled_from(["application/json; charset=utf-8", "text/plain", "", "application/json;"]),
        "expect": st.just("100-continue"),
    },
)


class Sent(NamedTuple):
    """A request, and when its client leaves."""

    path: str
    content: bytes
    headers: dict[str, str]
    fields: frozenset[str]
    """Of those that the route knows, the ones that ask for something. Empty where the bytes were broken."""
    leaves_after: int | None
    """Rounds of the loop; None: it stays."""


class _Endpoint:
    """What there is to say to one of them."""

    def __init__(self, path: str) -> None:
        info = inspect.type_info(SCHEMAS[path])
        assert isinstance(info, inspect.StructType)
        self.path = path
        self.valid: dict[str, Values] = {}
        self.typed: dict[str, Values] = {field.encode_name: of(field.type) for field in info.fields}
        for name in self.typed:
            known = [*BUILT[path].get(name, []), *BESIDE.get(name, [])]
            unbuilt = UNBUILT[path].get(name)
            self.valid[name] = st.sampled_from(known or (unbuilt.neutral if unbuilt else None) or [None])
        subject = "messages" if path == CHAT else "prompt"
        self.valid[subject] = st.sampled_from(CONVERSATIONS if path == CHAT else PROMPTS)
        self.subject = subject
        # what is served is tried more often than what is not
        self.names = st.sampled_from([*sorted(BUILT[path]), *sorted(set(self.typed) - set(UNBUILT[path]))]) | (
            st.sampled_from(sorted(self.typed))
        )


ENDPOINT = {path: _Endpoint(path) for path in ENDPOINTS}


@st.composite
def requests(draw: st.DrawFn) -> Sent:
    endpoint = ENDPOINT[draw(st.sampled_from(ENDPOINTS))]
    body: dict[str, Any] = {endpoint.subject: draw(endpoint.valid[endpoint.subject])}
    if draw(st.booleans()):
        body |= with_logprobs(endpoint.path, draw(st.integers(0, 3)))
    if draw(st.booleans()):
        body["stream"] = True
    is_valid = draw(st.booleans())
    for _ in range(draw(st.integers(0, 6))):
        name = draw(endpoint.names)
        body[name] = draw(endpoint.valid[name] if is_valid or draw(st.booleans()) else endpoint.typed[name])
    if not is_valid and draw(st.booleans()):
        body = json.loads(json.dumps(body))  # examples are drawn again as they are
        _break(draw, body)
    content = json.dumps(body, ensure_ascii=draw(st.booleans())).encode(errors="surrogatepass")
    fields = frozenset(name for name, value in body.items() if value is not None)
    if draw(st.integers(0, 7)) == 0:
        content, fields = _broken(draw, content), frozenset()
    headers = draw(HEADERS) if draw(st.integers(0, 7)) == 0 else {}
    leaves_after = draw(st.integers(0, 60)) if draw(st.integers(0, 4)) == 0 else None
    return Sent(endpoint.path, content, headers, fields, leaves_after)


def _break(draw: st.DrawFn, body: dict[str, Any]) -> None:
    """Put anything at all somewhere inside, or take something away."""
    place: Any = body
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.booleans()):
            break
        place = inner
    match draw(st.sampled_from(["replace", "delete", "add"])):
        case "replace":
            place[key] = draw(anything)
        case "delete":
            del place[key]
        case "add" if isinstance(place, dict):
            place[draw(texts)] = draw(anything)
        case "add":
            place.append(draw(anything))


def _broken(draw: st.DrawFn, content: bytes) -> bytes:
    """Mistakes that no JSON encoder makes."""
    at = draw(st.integers(0, len(content)))
    match draw(st.sampled_from(["cut", "splice", "twice", "deep", "encoding", "large", "many", "number"])):
        case "cut":
            return content[:at]
        case "splice":
            return content[:at] + draw(st.binary(max_size=3)) + content[at + draw(st.integers(0, 3)) :]
        case "twice":
            key = json.dumps(draw(st.sampled_from(["messages", "prompt", "n", "stream", "model"]))).encode()
            return b"{" + key + b":" + json.dumps(draw(anything)).encode() + b"," + content[1:]
        case "deep":
            depth, opening = (
                draw(st.sampled_from([60, 70, 500, 2000, 100_000])),
                draw(st.sampled_from([b"[", b'{"a":'])),
            )
            closing = {b"[": b"]"}.get(opening, b"1}")
            field = draw(st.sampled_from([b"kv_transfer_params", b"structured_outputs", b"tools", b"x", b"prompt"]))
            return content[:-1] + b',"' + field + b'":{"json":' + opening * depth + closing * depth + b"}}"
        case "encoding":
            return content.decode(errors="replace").encode(draw(st.sampled_from(["utf-16", "utf-8-sig", "utf-32"])))
        case "large":
            return content + b" " * (BODY_LIMIT + draw(st.integers(-1, 1)) - len(content))
        case "many":
            message = draw(
                st.sampled_from([b"{}", b'{"role":"user","content":"hi"}', b"null", b'{"role":"x"}', b'"a"'])
            )
            field = draw(st.sampled_from([b"messages", b"prompt", b"stop", b"bad_words", b"documents"]))
            return b'{"' + field + b'":[' + b",".join([message] * 10_000) + b"]}"
    digits = draw(
        st.sampled_from([b"1e999", b"-1e999", b"9" * 5000, b"0x10", b"010", b"NaN", b"-Infinity", b"1e-9999"])
    )
    field = draw(st.sampled_from([b"temperature", b"n", b"seed", b"max_tokens", b"logit_bias", b"x", b"priority"]))
    return content[:-1] + b',"' + field + b'":' + digits + b"}"
