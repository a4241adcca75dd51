"""How a chat request is written as a prompt, and what of that its answer repeats."""

from typing import Any

import pytest
from litestar import Litestar

from adapters.outbound.byte_tokenizer.tokenizer import EOS_TOKEN_ID
from adapters.outbound.hf_tokenizer.loading import load_tokenizer
from adapters.outbound.jinja_chat.renderer import JinjaChat
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.model import ModelDefaults
from application.options import ServerOptions
from tests.fakes.tokenizers import write_model_folder
from tests.http.answers import Json, answer, chunks, error_of
from tests.http.serving import CHAT, application, post, question

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
    "{% if add_generation_prompt %}[start]{% endif %}"
    "{% for document in documents or [] %}<{{ document.title }}>{% endfor %}"
)
VARIABLES = "{{ thinks }} {{ enable_thinking }} {{ reasoning_effort }} {{ add_generation_prompt }}"
MESSAGES = [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]
ECHOED = {"messages": MESSAGES, "echo": True, "add_generation_prompt": False, "continue_final_message": True}


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> JinjaChat:
    folder = tmp_path_factory.mktemp("model")
    return JinjaChat(load_tokenizer(str(write_model_folder(folder, chat_template=TEMPLATE))))


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine(steps(104, 105))


def serving(
    engine: ScriptedEngine, renderer: JinjaChat | None = None, role: str = "assistant", **defaults: Any
) -> Litestar:
    return application(
        engine,
        chat_renderer=renderer,
        options=ServerOptions(response_role=role),
        defaults=ModelDefaults(eos_token_id=EOS_TOKEN_ID, **defaults),
    )


async def prompt_of(app: Litestar, **fields: Any) -> str:
    """What reached the engine, as the template wrote it."""
    body = question(CHAT, "U", **fields) if "messages" not in fields else fields
    response = await post(app, CHAT, body | {"return_prompt_text": True})
    assert response.status_code == 200, response.text
    text: str = response.json()["prompt_text"]
    return text


class TestThePrompt:
    async def test_ends_with_the_start_of_an_answer_unless_asked_not_to(
        self, engine: ScriptedEngine, renderer: JinjaChat
    ) -> None:
        app = serving(engine, renderer)
        assert await prompt_of(app) == "[user:U][start]"
        assert await prompt_of(app, add_generation_prompt=True) == "[user:U][start]"
        assert await prompt_of(app, add_generation_prompt=False) == "[user:U]"

    async def test_ends_inside_the_final_message_to_continue_it(
        self, engine: ScriptedEngine, renderer: JinjaChat
    ) -> None:
        continued = {"messages": MESSAGES, "add_generation_prompt": False, "continue_final_message": True}
        assert await prompt_of(serving(engine, renderer), **continued) == "[user:U][assistant:A"
        assert await prompt_of(serving(engine), **continued) == "<|user|>U<|assistant|>A"

    async def test_has_the_documents(self, engine: ScriptedEngine, renderer: JinjaChat) -> None:
        documents = [{"title": "T", "text": "x"}, {"title": "S"}]
        assert await prompt_of(serving(engine, renderer), documents=documents) == "[user:U][start]<T><S>"

    async def test_is_shown_on_request_alone(self, engine: ScriptedEngine, renderer: JinjaChat) -> None:
        app = serving(engine, renderer)
        assert (await post(app, CHAT, question(CHAT))).json()["prompt_text"] is None
        asked = question(CHAT, "U", stream=True)
        texts = [chunk.get("prompt_text") for chunk in chunks(await post(app, CHAT, asked))]
        assert not any(texts)
        texts = [
            chunk.get("prompt_text") for chunk in chunks(await post(app, CHAT, asked | {"return_prompt_text": True}))
        ]
        assert texts == ["[user:U][start]", *[None] * (len(texts) - 1)]

    @pytest.mark.parametrize("starts", [{}, {"add_generation_prompt": True}, {"add_generation_prompt": None}])
    @pytest.mark.parametrize("stream", [False, True])
    async def test_cannot_both_start_an_answer_and_continue_a_message(
        self, engine: ScriptedEngine, renderer: JinjaChat, starts: dict[str, Any], stream: bool
    ) -> None:
        body = {"messages": MESSAGES, "continue_final_message": True, "stream": stream} | starts
        for app in (serving(engine, renderer), serving(engine)):
            assert error_of(await post(app, CHAT, body), 400)["param"] == "continue_final_message"
        assert not engine.submitted

    async def test_keeps_what_an_assistant_thought_and_what_a_tool_answers(
        self, engine: ScriptedEngine, renderer: JinjaChat
    ) -> None:
        template = (
            "{% for m in messages %}[{{ m.name }} {{ m.reasoning }} {{ m.reasoning_content }} {{ m.tool_call_id }}]"
            "{% endfor %}"
        )
        messages = [
            {"role": "user", "content": "U", "reasoning": "no", "tool_call_id": "no"},
            {"role": "assistant", "content": "A", "reasoning": "R"},
            {"role": "assistant", "content": "A", "reasoning_content": "C"},
            {"role": "assistant", "content": "A", "reasoning": "R", "reasoning_content": "C"},
            {"role": "tool", "content": "T", "name": "f", "tool_call_id": "7"},
        ]
        app = serving(engine, renderer, trust_request_chat_template=True)
        assert await prompt_of(app, messages=messages, chat_template=template) == ("[   ][ R R ][ C C ][ R R ][f   7]")


class TestATemplateInTheRequest:
    async def test_is_refused_by_name_unless_the_server_trusts_it(
        self, engine: ScriptedEngine, renderer: JinjaChat
    ) -> None:
        for body in (question(CHAT, chat_template="{{ 1 }}"), question(CHAT, chat_template="")):
            for stream in (False, True):
                error = error_of(await post(serving(engine, renderer), CHAT, body | {"stream": stream}), 400)
                assert error["param"] == "chat_template"
                assert "--trust-request-chat-template" in error["message"]
        assert not engine.submitted

    async def test_replaces_the_models_own_for_this_request(self, engine: ScriptedEngine, renderer: JinjaChat) -> None:
        app = serving(engine, renderer, trust_request_chat_template=True)
        assert await prompt_of(app, chat_template="mine: {{ messages[0].content }}") == "mine: U"
        assert await prompt_of(app, chat_template="") == "[user:U][start]"
        assert await prompt_of(app) == "[user:U][start]"

    @pytest.mark.parametrize("template", ["{% for %}", "{{ a | nosuchfilter }}", "{{"])
    async def test_that_is_no_jinja_is_the_callers_error(
        self, engine: ScriptedEngine, renderer: JinjaChat, template: str
    ) -> None:
        app = serving(engine, renderer, trust_request_chat_template=True)
        assert error_of(await post(app, CHAT, question(CHAT, chat_template=template)), 400)["param"] == "chat_template"

    @pytest.mark.parametrize(
        "template",
        [
            "{{ raise_exception('no') }}",
            "{{ 1 / 0 }}",
            '{{ "\\ud800" }}',
            '{{ raise_exception("\\ud800") }}',
            "{{ messages.append(1) }}",
        ],
    )
    async def test_that_fails_is_the_callers_error(
        self, engine: ScriptedEngine, renderer: JinjaChat, template: str
    ) -> None:
        app = serving(engine, renderer, trust_request_chat_template=True)
        assert error_of(await post(app, CHAT, question(CHAT, chat_template=template)), 400)["param"] == "messages"

    async def test_does_not_come_in_by_another_field(self, engine: ScriptedEngine, renderer: JinjaChat) -> None:
        for trusts in (False, True):
            app = serving(engine, renderer, trust_request_chat_template=trusts)
            body = question(CHAT, chat_template_kwargs={"chat_template": "{{ 1 }}"})
            assert error_of(await post(app, CHAT, body), 400)["param"] == "chat_template_kwargs"


class TestVariables:
    """`thinks` of the request, else of the server; null and auto leave it to the server."""

    @pytest.mark.parametrize(
        ("fields", "shown"),
        [
            ({}, "server None  True"),
            ({"chat_template_kwargs": {"thinks": "request"}}, "request None  True"),
            ({"chat_template_kwargs": {"thinks": False, "unknown": [1], "tokenize": True}}, "False None  True"),
            ({"chat_template_kwargs": {"thinks": None}}, "server None  True"),
            ({"chat_template_kwargs": {"thinks": "auto"}}, "server None  True"),
            ({"chat_template_kwargs": {"enable_thinking": 1}}, "server 1  True"),
            ({"chat_template_kwargs": {"add_generation_prompt": False}}, "server None  True"),
            ({"reasoning_effort": "none"}, "server False none True"),
            ({"reasoning_effort": "max"}, "server True max True"),
            ({"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": 2}}, "server 2 low True"),
            ({"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": None}}, "server None low True"),
            ({"reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "x"}}, "server True low True"),
            ({"chat_template_kwargs": {"reasoning_effort": "x"}}, "server None x True"),
        ],
    )
    async def test_of_the_template(
        self, engine: ScriptedEngine, renderer: JinjaChat, fields: dict[str, Any], shown: str
    ) -> None:
        kwargs = {"thinks": "server", "enable_thinking": None}
        app = serving(engine, renderer, trust_request_chat_template=True, chat_template_kwargs=kwargs)
        assert await prompt_of(app, chat_template=VARIABLES, **fields) == shown

    async def test_are_no_way_to_other_messages(self, engine: ScriptedEngine, renderer: JinjaChat) -> None:
        body = question(CHAT, chat_template_kwargs={"messages": []})
        assert error_of(await post(serving(engine, renderer), CHAT, body), 400)["param"] == "chat_template_kwargs"

    @pytest.mark.parametrize(
        ("param", "value"),
        [
            ("reasoning_effort", "tiny"),
            ("reasoning_effort", 1),
            ("documents", [{"title": 1}]),
            ("documents", {}),
            ("chat_template_kwargs", [1]),
            ("chat_template", 1),
            ("add_generation_prompt", "yes"),
            ("echo", 1),
        ],
    )
    async def test_of_the_wrong_type_are_refused_by_name(
        self, engine: ScriptedEngine, renderer: JinjaChat, param: str, value: Any
    ) -> None:
        body = question(CHAT, **{param: value})
        assert error_of(await post(serving(engine, renderer), CHAT, body), 400)["param"] == param

    @pytest.mark.parametrize(
        ("param", "value"),
        [
            ("chat_template_kwargs", {"enable_thinking": False}),
            ("documents", [{"title": "t", "text": "x"}]),
            ("reasoning_effort", "low"),
            ("chat_template", "{{ messages }}"),
        ],
    )
    async def test_without_a_template_are_refused_by_name(self, engine: ScriptedEngine, param: str, value: Any) -> None:
        app = serving(engine, trust_request_chat_template=True)
        assert error_of(await post(app, CHAT, question(CHAT, **{param: value})), 400)["param"] == param


class TestEcho:
    """The final message's content before the answer, where both are of the same role."""

    @pytest.mark.parametrize("stream", [False, True])
    async def test_comes_before_the_answer(self, engine: ScriptedEngine, stream: bool) -> None:
        assert answer(await post(serving(engine), CHAT, ECHOED | {"stream": stream})).text == "Ahi"
        started = ECHOED | {"add_generation_prompt": True, "continue_final_message": False, "stream": stream}
        assert answer(await post(serving(engine), CHAT, started)).text == "Ahi"

    @pytest.mark.parametrize("stream", [False, True])
    async def test_is_nothing_of_somebody_elses_message(self, engine: ScriptedEngine, stream: bool) -> None:
        body = question(CHAT, echo=True, stream=stream)
        assert answer(await post(serving(engine), CHAT, body)).text == "hi"
        assert answer(await post(serving(engine, role="user"), CHAT, body)).text == "hihi"

    async def test_has_parts_as_lines(self, engine: ScriptedEngine) -> None:
        parts = [{"type": "text", "text": text} for text in ("one", "", "two")]
        body = ECHOED | {"messages": [{"role": "assistant", "content": parts}]}
        assert answer(await post(serving(engine), CHAT, body)).text == "one\ntwohi"

    async def test_of_a_stream_is_a_chunk_per_choice_behind_those_of_the_roles(self, engine: ScriptedEngine) -> None:
        body = ECHOED | {"stream": True, "n": 2, "temperature": 1, "return_token_ids": True}
        body["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
        first = chunks(await post(serving(engine), CHAT, body))[:4]
        assert [chunk["choices"] for chunk in first] == [
            *([self.choice(index, {"role": "assistant", "content": ""})] for index in (0, 1)),
            *([self.choice(index, {"content": "A"})] for index in (0, 1)),
        ]
        assert ["prompt_token_ids" in chunk for chunk in first] == [True, True, False, False]
        assert all(chunk["usage"]["completion_tokens"] == 0 for chunk in first)

    @staticmethod
    def choice(index: int, delta: Json) -> Json:
        return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}

    @pytest.mark.parametrize(
        ("fields", "asked"),
        [
            ({}, 0),
            ({"logprobs": True, "top_logprobs": 2}, 2),
            ({"prompt_logprobs": 1}, 1),
            ({"logprobs": True, "top_logprobs": 2, "prompt_logprobs": 0}, 0),
            ({"echo": False}, None),
            ({"stream": True, "logprobs": True, "top_logprobs": 2}, None),
        ],
    )
    async def test_asks_for_scores_of_the_prompt_as_of_the_answer(
        self, engine: ScriptedEngine, fields: dict[str, Any], asked: int | None
    ) -> None:
        response = await post(serving(engine), CHAT, ECHOED | fields)
        assert engine.submitted[-1].sampling.prompt_logprobs == asked
        if "stream" not in fields:
            assert (response.json()["prompt_logprobs"] is None) is (asked is None)


class TestRole:
    @pytest.mark.parametrize(
        ("fields", "role"),
        [
            ({}, "model"),
            ({"add_generation_prompt": False}, "user"),
            ({"messages": MESSAGES, "add_generation_prompt": False, "continue_final_message": True}, "assistant"),
        ],
    )
    async def test_is_the_servers_or_the_final_messages(
        self, engine: ScriptedEngine, fields: dict[str, Any], role: str
    ) -> None:
        app, body = serving(engine, role="model"), question(CHAT) | fields
        assert (await post(app, CHAT, body)).json()["choices"][0]["message"]["role"] == role
        [first, *_] = chunks(await post(app, CHAT, body | {"stream": True}))
        assert first["choices"][0]["delta"]["role"] == role
