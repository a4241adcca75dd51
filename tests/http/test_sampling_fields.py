"""Fields that tell the engine how to choose tokens: what reaches it, and what is refused before anything does."""

from typing import Any

import pytest

from adapters.outbound.byte_tokenizer.tokenizer import VOCAB_SIZE
from adapters.outbound.hf_tokenizer.tokenizer import HfTokenizer
from adapters.outbound.mock_engine.scripted import ScriptedEngine, steps
from application.ports.tokenizer import Tokenizer
from domain.generation import FinishReason, GenerationRequest
from domain.sampling import RepetitionDetection
from tests.fakes.tokenizers import byte_level_bpe, gemma_bpe
from tests.http.answers import answer, error_of
from tests.http.serving import CHAT, COMPLETIONS, application, by_endpoint, post, question

STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def asked(path: str, tokenizer: Tokenizer | None = None, **fields: Any) -> GenerationRequest:
    """What reaches the engine."""
    engine = ScriptedEngine(steps(104))
    await post(application(engine, tokenizer=tokenizer), path, question(path, **fields))
    [request] = engine.submitted
    return request


async def refused(path: str, **fields: Any) -> str:
    """The message; `param` is the first of the fields. Nothing reaches the engine, and a stream is refused as well."""
    engine = ScriptedEngine(steps(104))
    messages = []
    for stream in (False, True):
        error = error_of(await post(application(engine), path, question(path, stream=stream, **fields)), 400)
        assert error["param"] == next(iter(fields))
        messages.append(error["message"])
    assert not engine.submitted
    assert messages[0] == messages[1]
    return str(messages[0])


@by_endpoint
async def test_what_reaches_the_engine_as_it_is(path: str) -> None:
    fields: dict[str, Any] = {
        "frequency_penalty": 0.25,
        "presence_penalty": -0.5,
        "repetition_penalty": 1.5,
        "allowed_token_ids": [5, 6, 5],
    }
    sampling = (await asked(path, **fields)).sampling
    assert {name: getattr(sampling, name) for name in fields} == fields


@by_endpoint
async def test_what_was_not_asked_for(path: str) -> None:
    request = await asked(path)
    sampling = request.sampling
    assert (sampling.frequency_penalty, sampling.presence_penalty, sampling.repetition_penalty) == (0, 0, 1)
    for name in ("logit_bias", "allowed_token_ids", "bad_words_token_ids", "repetition_detection", "extra_args"):
        assert getattr(sampling, name) is None, name
    assert (request.priority, request.cache_salt, request.session_id) == (0, None, None)


@by_endpoint
@pytest.mark.parametrize("name", ["frequency_penalty", "presence_penalty"])
@pytest.mark.parametrize("value", [-2.001, 2.001, 1e300])
async def test_penalties_have_a_range(path: str, name: str, value: float) -> None:
    assert "[-2, 2]" in await refused(path, **{name: value})


@by_endpoint
@pytest.mark.parametrize("value", [0, -1, -1e-9])
async def test_repetition_penalty_is_positive(path: str, value: float) -> None:
    assert "positive" in await refused(path, repetition_penalty=value)


@by_endpoint
@pytest.mark.parametrize(
    "fields",
    [
        {"frequency_penalty": "0"},
        {"presence_penalty": True},
        {"repetition_penalty": [1]},
        {"logit_bias": {"5": "1"}},
        {"logit_bias": [5]},
        {"allowed_token_ids": [-1]},
        {"allowed_token_ids": ["5"]},
        {"allowed_token_ids": 5},
        {"bad_words": "x"},
        {"bad_words": [5]},
        {"n": "1"},
        {"n": True},
        {"n": 1.5},
        {"include_stop_str_in_output": 1},
        {"add_special_tokens": "true"},
        {"spaces_between_special_tokens": 0},
        {"truncate_prompt_tokens": "5"},
        {"truncation_side": "middle"},
        {"repetition_detection": {"min_count": "2"}},
        {"stream_interval": 0},
        {"stream_interval": -1},
        {"stream_interval": 1.5},
        {"priority": 2**63},
        {"priority": "1"},
        {"cache_salt": 5},
        {"session_id": 5},
        {"vllm_xargs": {"a": None}},
        {"vllm_xargs": {"a": {"b": 1}}},
        {"vllm_xargs": [1]},
        {"kv_transfer_params": [1]},
        {"ec_transfer_params": "x"},
    ],
    ids=str,
)
async def test_types(path: str, fields: dict[str, Any]) -> None:
    await refused(path, **fields)


class TestLogitBias:
    @by_endpoint
    async def test_keys_become_ids_and_values_are_clamped(self, path: str) -> None:
        request = await asked(path, logit_bias={"5": 1, "0": -100.5, "260": 1e9, "7": -0.25})
        assert request.sampling.logit_bias == {5: 1.0, 0: -100.0, 260: 100.0, 7: -0.25}

    @by_endpoint
    @pytest.mark.parametrize("key", ["x", "", "1.5", "0x5", "5 6", "9" * 5000])
    async def test_keys_that_are_no_ids(self, path: str, key: str) -> None:
        message = await refused(path, logit_bias={"5": 1, key: 1})
        assert "token ids" in message
        assert len(message) < 200

    @by_endpoint
    @pytest.mark.parametrize("key", ["-1", "261", "9223372036854775808"])
    async def test_ids_that_the_model_lacks(self, path: str, key: str) -> None:
        assert key in await refused(path, logit_bias={"5": 1, key: 1})


class TestAllowedTokenIds:
    @by_endpoint
    async def test_none_allowed(self, path: str) -> None:
        assert "empty" in await refused(path, allowed_token_ids=[])

    @by_endpoint
    async def test_ids_that_the_model_lacks(self, path: str) -> None:
        assert "261" in await refused(path, allowed_token_ids=[5, 261, 6])


class TestBadWords:
    @by_endpoint
    async def test_a_word_and_the_same_word_behind_a_space(self, path: str) -> None:
        """Where the vocabulary has both in as many tokens, as `wo` and ` wo`; not where it does not, as `the`."""
        engine = ScriptedEngine(steps(104))
        tokenizer = HfTokenizer(byte_level_bpe())
        app = application(engine, tokenizer=tokenizer, vocab_size=600)
        for word, ways in {"wo": 2, "wor": 2, " wor": 2, "  wor": 2, "the": 1, " the": 1}.items():
            await post(app, path, question(path, bad_words=[word]))
            texts = (word.lstrip(), " " + word.lstrip())
            expected = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
            assert engine.submitted[-1].sampling.bad_words_token_ids == expected[:ways]

    @by_endpoint
    async def test_a_space_that_is_a_token_of_its_own(self, path: str) -> None:
        """Two tokens are no other way to write one."""
        request = await asked(path, bad_words=["x", "ab"])
        assert request.sampling.bad_words_token_ids == [[120], [97, 98]]

    @by_endpoint
    async def test_no_token_is_added(self, path: str) -> None:
        tokenizer = HfTokenizer(gemma_bpe())
        request = await asked(path, tokenizer, bad_words=["dog"])
        banned = request.sampling.bad_words_token_ids
        assert banned
        assert not {1, 2} & {token_id for sequence in banned for token_id in sequence}

    @by_endpoint
    @pytest.mark.parametrize("words", [[""], ["x", ""], [" "]])
    async def test_words_without_a_token(self, path: str, words: list[str]) -> None:
        assert "token" in await refused(path, bad_words=words)

    @by_endpoint
    async def test_how_many_words(self, path: str) -> None:
        most = [chr(0x100 + index) for index in range(128)]
        assert len((await asked(path, bad_words=most)).sampling.bad_words_token_ids or ()) == 128
        assert "128" in await refused(path, bad_words=[*most, "x"])

    @by_endpoint
    async def test_a_word_counts_once(self, path: str) -> None:
        assert (await asked(path, bad_words=["x"] * 200)).sampling.bad_words_token_ids == [[120]]

    @by_endpoint
    async def test_how_many_sequences(self, path: str) -> None:
        """A word that is banned in two ways counts twice."""
        engine = ScriptedEngine(steps(104))
        app = application(engine, tokenizer=HfTokenizer(byte_level_bpe()), vocab_size=600)
        words = ["wo", *[chr(0x4E00 + index) for index in range(126)]]
        await post(app, path, question(path, bad_words=words))
        assert len(engine.submitted[0].sampling.bad_words_token_ids or ()) == 128
        error = error_of(await post(app, path, question(path, bad_words=[*words, "x"])), 400)
        assert error["param"] == "bad_words"
        assert len(engine.submitted) == 1

    @by_endpoint
    async def test_how_many_tokens(self, path: str) -> None:
        words = ["a" * 512, "b" * 512]
        assert (await asked(path, bad_words=words)).sampling.bad_words_token_ids is not None
        assert "1024" in await refused(path, bad_words=[*words, "c"])


class TestRepetitionDetection:
    @by_endpoint
    async def test_reaches_the_engine(self, path: str) -> None:
        fields = {"max_pattern_size": 5, "min_pattern_size": 2, "min_count": 3}
        request = await asked(path, repetition_detection=fields)
        assert request.sampling.repetition_detection == RepetitionDetection(**fields)

    @by_endpoint
    @pytest.mark.parametrize(
        "fields",
        [
            {"max_pattern_size": -1},
            {"max_pattern_size": 3, "min_pattern_size": -1, "min_count": 2},
            {"max_pattern_size": 3, "min_pattern_size": 4, "min_count": 2},
            {"min_pattern_size": 1},
            {"max_pattern_size": 3},
            {"max_pattern_size": 3, "min_count": 1},
        ],
        ids=str,
    )
    async def test_sizes_that_mean_nothing(self, path: str, fields: dict[str, int]) -> None:
        await refused(path, repetition_detection=fields)

    @by_endpoint
    @STREAMED
    async def test_its_finish_reason(self, path: str, stream: bool) -> None:
        app = application(ScriptedEngine(steps(104, 104, finish_reason=FinishReason.REPETITION)))
        shown = answer(await post(app, path, question(path, stream=stream)))
        assert (shown.text, shown.finish_reason) == ("hh", "repetition")


class TestScheduling:
    @by_endpoint
    async def test_reaches_the_engine(self, path: str) -> None:
        request = await asked(path, priority=-3, cache_salt="salt", session_id="s")
        assert (request.priority, request.cache_salt, request.session_id) == (-3, "salt", "s")

    @by_endpoint
    async def test_every_choice_has_it(self, path: str) -> None:
        engine = ScriptedEngine(steps(104))
        fields: dict[str, Any] = {"n": 3, "priority": 2, "cache_salt": "salt", "session_id": "s"}
        await post(application(engine), path, question(path, **fields))
        assert [(one.priority, one.cache_salt, one.session_id) for one in engine.submitted] == [(2, "salt", "s")] * 3

    @by_endpoint
    @pytest.mark.parametrize("salt", ["", "a@b", "a/b", "a\\b", "a\0b", "a" * 129])
    async def test_salts_that_a_cache_may_stumble_over(self, path: str, salt: str) -> None:
        assert "128" in await refused(path, cache_salt=salt)

    @by_endpoint
    @pytest.mark.parametrize("salt", ["a", "🧂" * 128, "a b\n", "%2F"])
    async def test_other_salts(self, path: str, salt: str) -> None:
        assert (await asked(path, cache_salt=salt)).cache_salt == salt

    @by_endpoint
    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"vllm_xargs": {"session_id": "x"}}, "x"),
            ({"vllm_xargs": {"session_id": "x"}, "session_id": "s"}, "s"),
            ({"vllm_xargs": {"session_id": "x"}, "session_id": ""}, "x"),
            ({"vllm_xargs": {"session_id": 5}}, None),
            ({"session_id": ""}, None),
        ],
        ids=str,
    )
    async def test_a_session_named_elsewhere(self, path: str, fields: dict[str, Any], expected: str | None) -> None:
        """Same as vLLM: the field's own value, else that of the further arguments."""
        assert (await asked(path, **fields)).session_id == expected


class TestExtensions:
    @by_endpoint
    async def test_reach_the_engine(self, path: str) -> None:
        xargs = {"a": "b", "c": 1, "d": 0.5, "e": ["f", 1, 2.5]}
        kv: dict[str, Any] = {"do_remote_prefill": True, "remote_block_ids": [[1, 2]], "remote_host": None}
        ec: dict[str, Any] = {"x": {"y": 2**64 - 1, "z": -(2**63)}}
        request = await asked(path, vllm_xargs=xargs, kv_transfer_params=kv, ec_transfer_params=ec)
        assert request.sampling.extra_args == xargs | {"kv_transfer_params": kv, "ec_transfer_params": ec}

    @by_endpoint
    async def test_nothing_in_them(self, path: str) -> None:
        request = await asked(path, vllm_xargs={}, kv_transfer_params={}, ec_transfer_params={})
        assert request.sampling.extra_args is None

    async def test_prompt_token_ids_are_the_prompt_of_a_conversation(self) -> None:
        kv = {"do_remote_prefill": True, "prompt_token_ids": [97, 98, 99]}
        request = await asked(CHAT, kv_transfer_params=kv, truncate_prompt_tokens=2)
        assert list(request.prompt_token_ids) == [97, 98, 99]
        assert request.sampling.extra_args == {"kv_transfer_params": {"do_remote_prefill": True}}

    @pytest.mark.parametrize(("path", "echo"), [(CHAT, True), (COMPLETIONS, False)])
    async def test_prompt_token_ids_that_are_of_no_use(self, path: str, echo: bool) -> None:
        """An echo repeats messages, which are rendered; completions take token ids in a field of their own."""
        plain = await asked(path, echo=echo)
        request = await asked(path, echo=echo, kv_transfer_params={"prompt_token_ids": [97, 98], "a": 1})
        assert list(request.prompt_token_ids) == list(plain.prompt_token_ids)
        assert request.sampling.extra_args == {"kv_transfer_params": {"a": 1}}

    @pytest.mark.parametrize("ids", [[], "x", 5, {}, [-1], [1.5], ["1"], [True], [None], [VOCAB_SIZE], [97] * 8192])
    async def test_prompt_token_ids_that_are_none(self, ids: Any) -> None:
        await refused(CHAT, kv_transfer_params={"prompt_token_ids": ids})

    @by_endpoint
    async def test_prompt_token_ids_that_are_null(self, path: str) -> None:
        request = await asked(path, kv_transfer_params={"do_remote_prefill": True, "prompt_token_ids": None})
        assert request.sampling.extra_args == {"kv_transfer_params": {"do_remote_prefill": True}}

    @by_endpoint
    @pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**50])
    async def test_integers_beyond_64_bits(self, path: str, number: int) -> None:
        """They cannot be sent to the engine."""
        for name in ("kv_transfer_params", "ec_transfer_params"):
            assert "64 bits" in await refused(path, **{name: {"a": [{"b": number}]}})
        for value in (number, [number]):
            assert "64 bits" in await refused(path, vllm_xargs={"a": value})

    @by_endpoint
    async def test_how_deep(self, path: str) -> None:
        nested: Any = 1
        for _ in range(63):
            nested = [nested]
        assert (await asked(path, kv_transfer_params={"a": nested})).sampling.extra_args is not None
        assert "64" in await refused(path, kv_transfer_params={"a": [nested]})


async def test_special_tokens_around_a_text() -> None:
    """Completions have what the tokenizer is configured to add, conversations do not; the field turns it round."""
    tokenizer = HfTokenizer(gemma_bpe())
    plain = tokenizer.encode("dog", add_special_tokens=False)
    for value, expected in ((None, [1, *plain, 2]), (True, [1, *plain, 2]), (False, plain)):
        request = await asked("/v1/completions", tokenizer, prompt="dog", add_special_tokens=value)
        assert list(request.prompt_token_ids) == expected
    for value, added in ((None, False), (True, True), (False, False)):
        request = await asked(CHAT, tokenizer, add_special_tokens=value)
        assert (request.prompt_token_ids[0] == 1, request.prompt_token_ids[-1] == 2) == (added, added)
    request = await asked("/v1/completions", tokenizer, prompt=[5, 6])
    assert list(request.prompt_token_ids) == [5, 6]
