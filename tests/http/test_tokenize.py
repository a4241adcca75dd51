"""`/tokenize`, `/detokenize` and `/tokenizer_info`: tokens without a generation."""

from typing import Any

import pytest
from litestar import Litestar

from adapters.inbound.cli.settings import HttpSettings
from adapters.outbound.byte_tokenizer.tokenizer import VOCAB_SIZE
from adapters.outbound.hf_tokenizer.loading import configuration, load_tokenizer
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.jinja_chat.renderer import JinjaChat
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.model import ModelDefaults
from tests.fakes.tokenizers import llama_bpe, write_model_folder
from tests.http.answers import Json, answer, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, get, post, question

BOS = 1
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }} {{ tone }}] {{ m.content }}{% endfor %}"
    "{% for d in documents or [] %}<{{ d.title }}>{% endfor %}{{ reasoning_effort }}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
"""It begins with the token that the tokenizer puts before every text, too."""

MESSAGES = [
    {"role": "user", "content": "Hello, world! é🎉"},
    {"role": "assistant", "content": [{"type": "text", "text": "A"}]},
]
CONVERSATIONS: list[Json] = [
    {},
    {"add_generation_prompt": False},
    {"add_generation_prompt": False, "continue_final_message": True},
    {"add_special_tokens": True},
    {"chat_template_kwargs": {"tone": "kind"}},
    {"chat_template": "{{ messages[0].content }}"},
    {"documents": [{"title": "T", "text": "x"}]},
    {"reasoning_effort": "low"},
]


@pytest.fixture(scope="module")
def wires(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A model that adds `<s>` to texts, and whose template writes one itself."""
    folder = write_model_folder(tmp_path_factory.mktemp("model"), llama_bpe(), chat_template=TEMPLATE, eos_token="</s>")
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}'
    )
    loaded = load_tokenizer(str(folder))
    tokenizer = HfTokenizer(loaded.backend_tokenizer)
    return {
        "tokenizer": tokenizer,
        "chat_renderer": JinjaChat(loaded),
        "vocab_size": tokenizer.vocab_size,
        "defaults": ModelDefaults(trust_request_chat_template=True, chat_template_kwargs={"tone": "dry"}),
        "tokenizer_configuration": configuration(loaded),
    }


@pytest.fixture
def model(wires: dict[str, Any]) -> Litestar:
    return application(ScriptedEngine(steps(104)), **wires)


@pytest.fixture
def app() -> Litestar:
    return application(ScriptedEngine(steps(104), max_model_len=50))


async def tokens(app: Litestar, **body: Any) -> list[int]:
    response = await post(app, "/tokenize", body)
    assert response.status_code == 200, response.text
    found: list[int] = response.json()["tokens"]
    return found


class TestATokenisedText:
    async def test_is_answered_as_vllm_does(self, app: Litestar) -> None:
        response = await post(app, "/tokenize", {"model": "m", "prompt": "é", "return_token_strs": True})
        assert response.content == (
            b'{"count":2,"max_model_len":50,"tokens":[195,169],"token_strs":["<0xC3>","<0xA9>"]}'
        )

    @pytest.mark.parametrize("shown", [{}, {"return_token_strs": False}, {"return_token_strs": None}])
    async def test_has_no_strings_that_nobody_asked_for(self, app: Litestar, shown: Json) -> None:
        response = await post(app, "/tokenize", {"prompt": "ab", "unknown": 1} | shown)
        assert response.content == b'{"count":2,"max_model_len":50,"tokens":[97,98],"token_strs":null}'

    async def test_may_be_empty_or_longer_than_the_context(self, app: Litestar) -> None:
        assert await tokens(app, prompt="") == []
        assert len(await tokens(app, prompt="a" * 51)) == 51

    @pytest.mark.parametrize("adds", [None, True, False])
    async def test_is_what_completions_send(self, model: Litestar, adds: bool | None) -> None:
        body = question(COMPLETIONS, "Hello é🎉", add_special_tokens=adds, return_token_ids=True)
        sent = answer(await post(model, COMPLETIONS, body)).prompt_token_ids
        assert sent == await tokens(model, prompt="Hello é🎉", add_special_tokens=adds)
        assert sent.count(BOS) == (adds is not False)

    async def test_has_the_entries_as_the_vocabulary_writes_them(self, model: Litestar) -> None:
        response = await post(model, "/tokenize", {"prompt": "Hello", "return_token_strs": True})
        strings = response.json()["token_strs"]
        assert strings[0] == "<s>"
        assert "".join(strings[1:]) == "▁Hello"


class TestATokenisedConversation:
    @pytest.mark.parametrize("how", CONVERSATIONS, ids=str)
    async def test_is_what_chat_sends(self, model: Litestar, how: Json) -> None:
        """Case 56."""
        body = {"messages": MESSAGES} | how
        sent = answer(await post(model, CHAT, body | {"return_token_ids": True})).prompt_token_ids
        assert sent == await tokens(model, **body)
        if "chat_template" not in how:
            assert sent.count(BOS) == 1 + how.get("add_special_tokens", False)

    @pytest.mark.parametrize(
        ("body", "param"),
        [
            ({"messages": []}, "messages"),
            ({"messages": MESSAGES, "prompt": "a"}, "prompt"),
            ({}, "prompt"),
            ({"prompt": ["a"]}, "prompt"),
            ({"prompt": [1, 2]}, "prompt"),
            ({"messages": MESSAGES, "continue_final_message": True}, "continue_final_message"),
            ({"messages": MESSAGES, "tools": [{"type": "function"}]}, "tools"),
            ({"messages": MESSAGES, "mm_processor_kwargs": {"a": 1}}, "mm_processor_kwargs"),
            ({"messages": [{"role": "nobody", "content": "a"}]}, "messages"),
            ({"prompt": "a", "add_special_tokens": "yes"}, "add_special_tokens"),
        ],
        ids=str,
    )
    async def test_is_refused_by_name(self, app: Litestar, body: Json, param: str) -> None:
        assert error_of(await post(app, "/tokenize", body), 400)["param"] == param

    @pytest.mark.parametrize(("path", "body"), [("/tokenize", {"prompt": "a"}), ("/detokenize", {"tokens": [1]})])
    async def test_another_model_is_not_here(self, app: Litestar, path: str, body: Json) -> None:
        assert error_of(await post(app, path, body | {"model": "x"}), 404, "NotFoundError")["param"] == "model"


class TestDetokenised:
    @pytest.mark.parametrize(
        ("token_ids", "text"),
        [([], b""), ([104, 105, 257], b"hi<|eos|>"), ([0xF0, 0x9F, 0x8E, 0x89], "🎉".encode()), ([0xF0], "�".encode())],
    )
    async def test_special_tokens_are_shown(self, app: Litestar, token_ids: list[int], text: bytes) -> None:
        response = await post(app, "/detokenize", {"tokens": token_ids})
        assert response.content == b'{"prompt":"%b"}' % text

    @pytest.mark.parametrize("text", ["Hello, world! é🎉", "", "x"])
    async def test_gives_back_what_was_tokenised(self, model: Litestar, text: str) -> None:
        token_ids = await tokens(model, prompt=text, add_special_tokens=False)
        assert (await post(model, "/detokenize", {"tokens": token_ids})).json() == {"prompt": text}

    @pytest.mark.parametrize("lacking", [-1, VOCAB_SIZE, 2**63 - 1, 2**63, 1.0, "1", None, True])
    async def test_an_id_that_is_none_is_refused(self, app: Litestar, lacking: Any) -> None:
        assert error_of(await post(app, "/detokenize", {"tokens": [97, lacking]}), 400)["param"] == "tokens"

    async def test_two_million_of_them_are_read(self, app: Litestar) -> None:
        body = b'{"tokens":[' + b"97," * 2_000_000 + b"97]}"
        assert len((await post(app, "/detokenize", body)).json()["prompt"]) == 2_000_001


class TestTokenizerInfo:
    async def test_is_served_by_a_server_with_the_flag_alone(self, model: Litestar) -> None:
        error_of(await get(model, "/tokenizer_info"), 404, "NotFoundError")

    async def test_tells_the_configuration(self, wires: dict[str, Any]) -> None:
        app = application(
            ScriptedEngine(steps(104)), settings=HttpSettings(enable_tokenizer_info_endpoint=True), **wires
        )
        told = (await get(app, "/tokenizer_info")).json()
        assert told["tokenizer_class"].startswith(("PreTrained", "Tokenizers"))
        assert (told["bos_token"], told["eos_token"], told["chat_template"]) == ("<s>", "</s>", TEMPLATE)
        assert not {"vocab_file", "merges_file", "tokenizer_file"} & set(told)
