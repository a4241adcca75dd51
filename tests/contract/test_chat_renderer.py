"""What every chat renderer promises, and what each makes of a conversation."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from adapters.outbound.byte_tokenizer.chat import PlainChat
from adapters.outbound.hf_tokenizer.loading import PretrainedTokenizer, load_tokenizer
from adapters.outbound.jinja_chat.renderer import JinjaChat
from application.ports.chat_renderer import ChatRenderer, ConversationNotRenderable
from domain.chat import Message, Rendering
from tests.fakes.tokenizers import CHATML, write_model_folder

PLAIN = Rendering()


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> PretrainedTokenizer:
    return load_tokenizer(str(write_model_folder(tmp_path_factory.mktemp("model"))))


@pytest.fixture(params=["plain", "jinja"])
def renderer(request: pytest.FixtureRequest) -> ChatRenderer:
    return PlainChat() if request.param == "plain" else JinjaChat(request.getfixturevalue("pretrained"))


def user(content: str | Sequence[str]) -> list[Message]:
    return [Message("user", content)]


def test_a_conversation_is_written_in_order_and_ends_where_the_answer_starts(renderer: ChatRenderer) -> None:
    text = renderer.render(
        [Message("system", "S"), Message("user", "🐱"), Message("assistant", "A"), Message("user", "U")], PLAIN
    )
    places = [text.index(content) for content in ("S", "🐱", "A", "U")]
    assert places == sorted(places)
    assert text.rstrip("\n").endswith(("assistant", "<|assistant|>"))


def test_parts_of_a_content_are_lines(renderer: ChatRenderer) -> None:
    assert renderer.render(user(["one", "two"]), PLAIN) == renderer.render(user("one\ntwo"), PLAIN)
    assert renderer.render(user(["one"]), PLAIN) == renderer.render(user("one"), PLAIN)


def test_empty_content_is_no_failure(renderer: ChatRenderer) -> None:
    assert renderer.render(user(""), PLAIN) == renderer.render(user([]), PLAIN) == renderer.render(user([""]), PLAIN)


def test_without_the_start_of_an_answer_it_ends_with_the_conversation(renderer: ChatRenderer) -> None:
    for conversation in (user("U"), [*user("U"), Message("assistant", "A")]):
        bare = renderer.render(conversation, Rendering(add_generation_prompt=False))
        started = renderer.render(conversation, PLAIN)
        assert started.startswith(bare)
        assert "assistant" in started.removeprefix(bare)


@pytest.mark.parametrize("content", ["The answer is", "A 🐱 ", ["one", "two"], "<|eos|>"])
def test_a_final_message_is_continued_where_it_ends(renderer: ChatRenderer, content: str | list[str]) -> None:
    conversation = [*user("U"), Message("assistant", content)]
    text = renderer.render(conversation, Rendering(add_generation_prompt=False, continue_final_message=True))
    ended = renderer.render(conversation, Rendering(add_generation_prompt=False))
    assert text.endswith(content if isinstance(content, str) else "one\ntwo")
    assert ended.startswith(text)
    assert len(ended) > len(text)


def test_no_messages_are_no_conversation(renderer: ChatRenderer) -> None:
    with pytest.raises(ConversationNotRenderable) as caught:
        renderer.render([], PLAIN)
    assert caught.value.param == "messages"


class TestPlainChat:
    def test_turns_stand_behind_their_role(self) -> None:
        conversation = [Message("system", "S"), Message("user", "U"), Message("assistant", "A"), Message("user", "V")]
        expected = "<|system|>S<|user|>U<|assistant|>A<|eos|><|user|>V<|assistant|>"
        assert PlainChat().render(conversation, PLAIN) == expected

    def test_an_unknown_role_is_refused_by_name(self) -> None:
        with pytest.raises(ConversationNotRenderable, match="'critic'") as caught:
            PlainChat().render([Message("critic", "C")], PLAIN)
        assert caught.value.param == "messages"

    @pytest.mark.parametrize(
        ("rendering", "field"),
        [
            (Rendering(template="{{ messages }}"), "chat_template"),
            (Rendering(kwargs={"enable_thinking": False}), "chat_template_kwargs"),
            (Rendering(kwargs={"enable_thinking": True, "reasoning_effort": "low"}), "reasoning_effort"),
            (Rendering(documents=[{"title": "T"}]), "documents"),
        ],
    )
    def test_what_is_for_a_template_is_refused_by_name(self, rendering: Rendering, field: str) -> None:
        with pytest.raises(ConversationNotRenderable, match=f"^{field} ") as caught:
            PlainChat().render(user("U"), rendering)
        assert caught.value.param == field


class TestJinjaChat:
    def test_it_renders_as_transformers_does(self, pretrained: PretrainedTokenizer) -> None:
        conversation = [Message("system", "S"), Message("user", "<|im_end|> & 'q' 🐱"), Message("tool", "T")]
        expected = pretrained.apply_chat_template(
            [{"role": message.role, "content": message.content} for message in conversation],
            tokenize=False,
            add_generation_prompt=True,
        )
        assert JinjaChat(pretrained).render(conversation, PLAIN) == expected
        assert expected.startswith("<|im_start|>system\nS<|im_end|>\n")

    def test_the_template_sees_special_tokens_names_and_the_date(self, pretrained: PretrainedTokenizer) -> None:
        template = (
            "{{ messages[0].name }}{{ messages[1].name is defined }}{{ eos_token }}{{ strftime_now('%Y') | length }}"
        )
        conversation = [Message("user", "U", "Ada"), Message("user", "U")]
        assert JinjaChat(pretrained, template).render(conversation, PLAIN) == "AdaFalse<|im_end|>4"

    @pytest.mark.parametrize(
        "template",
        [
            "{% for m in messages %}{% for p in m.content %}<{{ p.type }}:{{ p.text }}>{% endfor %}{% endfor %}",
            "{% for m in messages %}{% for part in m['content'] %}<text:{{ part['text'] }}>{% endfor %}{% endfor %}",
            "{% set loop_messages = messages[0:] %}{% for m in loop_messages %}"
            "{% for p in m['content'] | list %}<text:{{ p.text }}>{% endfor %}{% endfor %}",
            "{% for m in messages %}{% set content = m.content %}"
            "{% if content is string %}{{ content }}{% else %}"
            "{% for p in content %}<text:{{ p.text }}>{% endfor %}{% endif %}{% endfor %}",
            "{% macro show(c) %}{% for p in c %}<text:{{ p.text }}>{% endfor %}{% endmacro %}"
            "{% for m in messages %}{{ show(m.content) }}{% endfor %}",
            "{% macro show(a, c=[]) %}{% for p in c %}<text:{{ p.text }}>{% endfor %}{% endmacro %}"
            "{% for m in messages %}{{ show(1, c=m['content']) }}{% endfor %}",
        ],
    )
    def test_a_template_that_iterates_over_content_gets_parts(
        self, pretrained: PretrainedTokenizer, template: str
    ) -> None:
        renderer = JinjaChat(pretrained, template)
        assert renderer.render(user(["one", "two"]), PLAIN) == "<text:one><text:two>"
        assert renderer.render(user("one"), PLAIN) == "<text:one>"

    @pytest.mark.parametrize(
        "template",
        [
            "{% for m in messages %}{{ m.content }}{% endfor %}",
            "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c }}{% endfor %}{{ m['content'] }}{% endfor %}",
            "{% macro show(content) %}{% for p in [1] %}{{ content }}{% endfor %}{% endmacro %}"
            "{% for m in messages %}{{ show(m.content) }}{% endfor %}",
            "{% set ns = namespace(m=0) %}{% set ns.m = messages %}{% for m in messages %}"
            "{% if m.content is not string %}{% for p in m.content %}x{% endfor %}{% endif %}"
            "{{ m.content }}{% endfor %}",
        ],
    )
    def test_any_other_template_gets_lines(self, pretrained: PretrainedTokenizer, template: str) -> None:
        assert JinjaChat(pretrained, template).render(user(["one", "", "two"]), PLAIN) == "one\ntwo"

    @pytest.mark.parametrize("format_and_text", [("string", "one\ntwo"), ("openai", "text text ")])
    def test_a_content_format_that_is_given_wins(
        self, pretrained: PretrainedTokenizer, format_and_text: tuple[Literal["string", "openai"], str]
    ) -> None:
        content_format, text = format_and_text
        for template in (
            "{% set c = messages[0].content %}"
            "{% if c is string %}{{ c }}{% else %}{{ c[0].type }} {{ c[1].type }} {% endif %}",
            "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
            "{% for p in m.content %}{{ p.type }} {% endfor %}{% endif %}{% endfor %}",
        ):
            assert JinjaChat(pretrained, template, content_format).render(user(["one", "two"]), PLAIN) == text

    def test_a_template_for_one_conversation_is_read_as_itself(self, pretrained: PretrainedTokenizer) -> None:
        renderer = JinjaChat(pretrained)
        parts = "{% for m in messages %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endfor %}"
        assert renderer.render(user(["one", "two"]), Rendering(template=parts)) == "<one><two>"
        assert renderer.render(user(["one", "two"]), PLAIN).startswith("<|im_start|>user\none\ntwo<|im_end|>")

    @pytest.mark.parametrize("template", ["{% for %}", "{{ x | nosuchfilter }}"])
    def test_a_template_that_is_none_is_refused_as_such(self, pretrained: PretrainedTokenizer, template: str) -> None:
        with pytest.raises(ConversationNotRenderable) as caught:
            JinjaChat(pretrained).render(user("U"), Rendering(template=template))
        assert caught.value.param == "chat_template"

    def test_variables_reach_the_template_and_nothing_else(self, pretrained: PretrainedTokenizer) -> None:
        template = "{{ a }}{{ conversation is defined }}{{ documents[0].title }}{{ tools[0].name }}"
        kwargs: dict[str, Any] = {
            "a": 1,
            "b": 2,
            "tokenize": True,
            "return_assistant_tokens_mask": True,
            "padding": True,
        }
        kwargs |= {"conversation": [], "self": 1, "tools": [{"name": "f"}], "documents": [{"title": "no"}]}
        rendering = Rendering(template=template, kwargs=kwargs, documents=[{"title": "T"}])
        assert JinjaChat(pretrained).render(user("U"), rendering) == "1FalseTf"
        with pytest.raises(ConversationNotRenderable) as caught:
            JinjaChat(pretrained).render(user("U"), Rendering(kwargs={"messages": []}))
        assert caught.value.param == "chat_template_kwargs"

    def test_a_message_that_the_template_changes_is_not_continued(self, pretrained: PretrainedTokenizer) -> None:
        rendering = Rendering(add_generation_prompt=False, continue_final_message=True)
        for template in ("{{ messages[0].role }}", "{{ messages[0].content | upper }}"):
            with pytest.raises(ConversationNotRenderable, match="cannot be continued") as caught:
                JinjaChat(pretrained, template).render(user("secret"), rendering)
            assert caught.value.param == "messages"
            assert "secret" not in str(caught.value)

    def test_half_a_character_is_no_prompt(self, pretrained: PretrainedTokenizer) -> None:
        for template in ('{{ "\\ud800" }}', '{{ raise_exception("\\ud800") }}'):
            with pytest.raises(ConversationNotRenderable) as caught:
                JinjaChat(pretrained, template).render(user("U"), PLAIN)
            assert str(caught.value).encode()

    def test_an_assistants_reasoning_has_two_names(self, pretrained: PretrainedTokenizer) -> None:
        template = "{% for m in messages %}{{ m.reasoning }}{{ m.reasoning_content }}.{% endfor %}"
        conversation = [Message("assistant", "A", reasoning="R"), Message("user", "U", reasoning="R")]
        assert JinjaChat(pretrained, template).render(conversation, PLAIN) == "RR.."

    def test_a_tools_result_has_the_id_of_its_call(self, pretrained: PretrainedTokenizer) -> None:
        template = "{% for m in messages %}{{ m.tool_call_id }}.{% endfor %}"
        conversation = [Message("tool", "T", tool_call_id="7"), Message("user", "U", tool_call_id="8")]
        assert JinjaChat(pretrained, template).render(conversation, PLAIN) == "7.."

    def test_a_tools_result_is_one_text(self, pretrained: PretrainedTokenizer) -> None:
        template = (
            "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
            "{% for p in m.content %}{{ p.type }}{% endfor %}{% endif %} {% endfor %}"
        )
        conversation = [Message("user", "U"), Message("tool", ["one", "two"])]
        assert JinjaChat(pretrained, template).render(conversation, PLAIN) == "text one\ntwo "

    ROLES = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"

    def test_a_developer_speaks_as_the_system_where_the_template_knows_no_developer(
        self, pretrained: PretrainedTokenizer
    ) -> None:
        conversation = [Message("system", "S"), Message("user", "U"), Message("developer", ["D", "E"])]
        assert JinjaChat(pretrained, self.ROLES).render(conversation, PLAIN) == "system:S\n\nD\nE;user:U;"
        assert JinjaChat(pretrained, self.ROLES).render(conversation[2:], PLAIN) == "system:D\nE;"
        knowing = self.ROLES + "{% if messages[0].role == 'developer' %}{% endif %}"
        assert JinjaChat(pretrained, knowing).render(conversation, PLAIN) == "system:S;user:U;developer:D\nE;"

    @pytest.mark.parametrize(
        ("template", "reason"),
        [
            ("{{ raise_exception('System role not supported') }}", "System role not supported"),
            ("{{ messages[0].nothing.at.all }}", r"'dict object' has no attribute 'nothing' \(line 1\)$"),
            ("{% set kept = namespace() %}\n{{ kept.a.b }}", r"'object' has no attribute 'a' \(line 2\)$"),
            ("\n{{ messages[0].content + 1 }}", r"conversation\. It fails\. \(line 2\)$"),
            ("{{ 1 / 0 }}", "It fails."),
            ("{{ raise_exception() }}", "It fails."),
            ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "It fails."),
            ("{{ ''.__class__.__mro__ }}", "unsafe"),
            ("{% include 'nothing' %}", "It fails."),
            ("{{ raise_exception('long ' * 10000) }}", "long long"),
        ],
    )
    def test_whatever_a_template_raises_is_the_callers_error(
        self, pretrained: PretrainedTokenizer, template: str, reason: str
    ) -> None:
        with pytest.raises(ConversationNotRenderable, match=reason) as caught:
            JinjaChat(pretrained, template).render(user("U"), PLAIN)
        assert caught.value.param == "messages"
        assert len(str(caught.value)) < 600
        assert not re.search(r"Error|jinja|transformers|<locals>", str(caught.value))

    def test_a_system_message_is_refused_where_the_template_refuses_it(self, pretrained: PretrainedTokenizer) -> None:
        template = "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}{% endif %}" + CHATML
        renderer = JinjaChat(pretrained, template)
        with pytest.raises(ConversationNotRenderable, match="No system role"):
            renderer.render([Message("system", "S"), *user("U")], PLAIN)
        assert "U" in renderer.render(user("U"), PLAIN)


class TestTemplatesOfAModel:
    def renderer(self, path: Path, chat_template: str | dict[str, str] | None) -> JinjaChat:
        return JinjaChat(load_tokenizer(str(write_model_folder(path, chat_template=chat_template))))

    def test_a_model_without_a_template_takes_no_conversation(self, tmp_path: Path) -> None:
        with pytest.raises(ConversationNotRenderable, match="no chat template") as caught:
            self.renderer(tmp_path, None).render(user("U"), PLAIN)
        assert caught.value.param == "messages"

    def test_of_several_templates_the_default_is_used(self, tmp_path: Path) -> None:
        assert self.renderer(tmp_path, {"tool_use": "T", "default": "D"}).render(user("U"), PLAIN) == "D"

    def test_a_request_may_name_another_one(self, tmp_path: Path) -> None:
        renderer = self.renderer(tmp_path, {"tool_use": "T", "default": "D"})
        assert renderer.render(user("U"), Rendering(template="tool_use")) == "T"
        assert renderer.render(user("U"), Rendering(template="other")) == "other"

    def test_several_templates_without_a_default_take_no_conversation(self, tmp_path: Path) -> None:
        with pytest.raises(ConversationNotRenderable, match="rag, tool_use"):
            self.renderer(tmp_path, {"tool_use": "T", "rag": "R"}).render(user("U"), PLAIN)

    @pytest.mark.parametrize("template", ["{% for %}", "{{ messages | nosuchfilter }}", "{% endfor %}"])
    def test_a_template_that_is_no_jinja_is_told_to_whoever_uses_it(self, tmp_path: Path, template: str) -> None:
        with pytest.raises(ConversationNotRenderable, match=r"not valid: .* \(line 1\)$"):
            self.renderer(tmp_path, template).render(user("U"), PLAIN)
