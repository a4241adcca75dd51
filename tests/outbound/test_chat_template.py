"""The chat template that a server is started with."""

from pathlib import Path

import pytest

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
