"""The chat template that a server is started with."""

from pathlib import Path
from typing import Any, Literal

import pytest

from adapters.bootstrap.models import load_model
from adapters.inbound.cli.settings import ModelSettings
from adapters.outbound.hf_tokenizer.loading import load_tokenizer
from adapters.outbound.jinja_chat.renderer import JinjaChat
from adapters.outbound.jinja_chat.template import ChatTemplateNotLoadable, read_chat_template
from domain.chat import Message, Rendering
from tests.fakes.tokenizers import write_model_folder


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").write_text("{{ messages }}é", encoding="utf-8")
    assert read_chat_template(str(tmp_path / "chat.jinja")) == "{{ messages }}é"


def test_what_looks_like_a_template_is_one() -> None:
    assert read_chat_template("{{ messages }}") == "{{ messages }}"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "chat.jinja"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ChatTemplateNotLoadable, match=str(path)):
        read_chat_template(str(path))


def test_it_is_used_instead_of_the_models_own(tmp_path: Path) -> None:
    pretrained = load_tokenizer(str(write_model_folder(tmp_path)))
    assert (
        JinjaChat(pretrained, "mine: {{ messages[0].content }}").render([Message("user", "U")], Rendering())
        == "mine: U"
    )


def test_one_that_is_no_jinja_is_refused_at_once(tmp_path: Path) -> None:
    pretrained = load_tokenizer(str(write_model_folder(tmp_path)))
    with pytest.raises(ChatTemplateNotLoadable, match="line 1"):
        JinjaChat(pretrained, "{% for %}")


class TestAServerStartedWithFlags:
    def settings(self, path: Path, **given: Any) -> ModelSettings:
        folder = str(write_model_folder(path / "model"))
        (path / "model" / "config.json").write_text('{"vocab_size": 300}')
        return ModelSettings(model=folder, served_model_names=("m",), **given)

    def test_uses_the_template_of_a_file_or_of_the_command_line(self, tmp_path: Path) -> None:
        (tmp_path / "chat.jinja").write_text("file: {{ messages[0].content }}")
        for given, expected in (
            (str(tmp_path / "chat.jinja"), "file: U"),
            ("inline: {{ messages[0].content }}", "inline: U"),
        ):
            model = load_model(self.settings(tmp_path, chat_template=given))
            assert model.chat_renderer.render([Message("user", "U")], Rendering()) == expected

    @pytest.mark.parametrize(("content_format", "expected"), [("auto", "U"), ("string", "U"), ("openai", "list")])
    def test_gives_content_in_the_format_it_is_told(
        self, tmp_path: Path, content_format: Literal["auto", "string", "openai"], expected: str
    ) -> None:
        template = "{{ messages[0].content if messages[0].content is string else 'list' }}"
        settings = self.settings(tmp_path, chat_template=template, chat_template_content_format=content_format)
        assert load_model(settings).chat_renderer.render([Message("user", "U")], Rendering()) == expected

    def test_trusts_no_templates_of_requests_and_has_no_variables_but_those_it_is_told_of(self, tmp_path: Path) -> None:
        defaults = load_model(self.settings(tmp_path)).defaults
        assert (defaults.trust_request_chat_template, defaults.chat_template_kwargs) == (False, {})
        told = self.settings(tmp_path, trust_request_chat_template=True, default_chat_template_kwargs={"a": [1]})
        defaults = load_model(told).defaults
        assert (defaults.trust_request_chat_template, defaults.chat_template_kwargs) == (True, {"a": [1]})

    @pytest.mark.parametrize("template", ["no-such-file", "{% for %}"])
    def test_does_not_start_with_a_bad_template(self, tmp_path: Path, template: str) -> None:
        settings = self.settings(tmp_path, chat_template=template)
        with pytest.raises(ChatTemplateNotLoadable):
            load_model(settings)
