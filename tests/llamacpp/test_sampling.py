"""How tokens are chosen: each parameter does what it says, and what cannot be done is refused by name."""

import asyncio
import json
import math
import re
from typing import Any

import pytest

from adapters.outbound.llamacpp_engine.engine import LlamaCppEngine
from adapters.outbound.llamacpp_engine.tokenizer import GgufTokenizer
from domain.errors import RequestError
from domain.sampling import RepetitionDetection
from domain.structured_outputs import (
    Choice,
    Grammar,
    JsonObject,
    JsonSchema,
    Regex,
    StructuralTag,
    StructuredOutputs,
)
from tests.llamacpp.asking import EOS, OTHER_ENDS, answer, asked, ids_of, rows_of, tokens

PROMPT = [504, 3575, 282, 4649, 314]
"""The capital of France is"""


async def test_allowed_ids_are_all_there_is(engine: LlamaCppEngine) -> None:
    allowed = [81, 82, 504]
    assert set(await tokens(engine, PROMPT, temperature=1, allowed_token_ids=allowed, max_tokens=30)) <= set(allowed)


async def test_a_bias_decides(engine: LlamaCppEngine) -> None:
    assert await tokens(engine, PROMPT, logit_bias={81: 100.0}, max_tokens=3) == [81] * 3


async def test_bad_words_are_never_completed(engine: LlamaCppEngine) -> None:
    free = await tokens(engine, PROMPT, max_tokens=12)
    for start, end in ((0, 1), (1, 3), (3, 6)):
        banned = free[start:end]
        held = await tokens(engine, PROMPT, max_tokens=12, bad_words_token_ids=[banned])
        assert banned not in [held[index : index + len(banned)] for index in range(len(held))]
        assert held[: end - 1] == free[: end - 1]


async def test_a_scored_token_that_was_banned_keeps_its_score(engine: LlamaCppEngine) -> None:
    free = rows_of(await answer(engine, asked(PROMPT, logprobs=1, max_tokens=1)))[0]
    held = rows_of(
        await answer(engine, asked(PROMPT, logprobs=1, max_tokens=1, bad_words_token_ids=[[free.token_ids[0]]]))
    )
    assert held[0].token_ids[0] != free.token_ids[0]
    assert held[0].token_ids[1] == free.token_ids[0]
    assert held[0].logprobs[1] == free.logprobs[0]
    assert held[0].ranks == [2]


async def test_the_end_is_held_off(engine: LlamaCppEngine) -> None:
    held = await tokens(engine, PROMPT, logit_bias={EOS: 100.0}, min_tokens=5, max_tokens=20)
    assert len(held) == 6
    assert held.index(EOS) == 5


@pytest.mark.parametrize(
    "penalty", [{"repetition_penalty": 50.0}, {"presence_penalty": 2.0}, {"frequency_penalty": 2.0}], ids=str
)
async def test_penalties_keep_a_token_from_coming_again(engine: LlamaCppEngine, penalty: dict[str, float]) -> None:
    """Of two tokens that a bias puts one apart, whichever is ahead."""
    behind = asked([*PROMPT, 81], logprobs=0, logprob_token_ids=[81, 82], max_tokens=1)
    _, one, other = rows_of(await answer(engine, behind))[0].logprobs
    chosen: dict[str, Any] = {"logit_bias": {81: 50 - one, 82: 49 - other}, "max_tokens": 2}
    first, second = await tokens(engine, PROMPT, **chosen, bad_words_token_ids=[[82, 82], [82, 81]])
    assert (first, second) == (81, 81)
    assert await tokens(engine, PROMPT, **chosen, **penalty) == [81, 82]


async def test_only_a_repetition_penalty_counts_the_prompt(engine: LlamaCppEngine) -> None:
    prompt = [504] * 20
    chosen = {"max_tokens": 1, "logit_bias": {504: 30.0}}
    assert await tokens(engine, prompt, **chosen) == [504]
    assert await tokens(engine, prompt, **chosen, presence_penalty=2.0, frequency_penalty=2.0) == [504]
    assert await tokens(engine, prompt, **chosen, repetition_penalty=50.0) != [504]


@pytest.mark.parametrize("cut", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}])
async def test_cuts_to_the_likeliest_are_greedy(engine: LlamaCppEngine, cut: dict[str, float]) -> None:
    greedy = await tokens(engine, PROMPT, max_tokens=6)
    assert await tokens(engine, PROMPT, temperature=2.0, seed=3, max_tokens=6, **cut) == greedy


async def test_a_seed_decides_and_none_does_not(engine: LlamaCppEngine) -> None:
    one, two, other = [await tokens(engine, PROMPT, temperature=1.5, seed=seed) for seed in (5, 5, 6)]
    assert one == two
    assert one != other
    free = {tuple(await tokens(engine, PROMPT, temperature=2.0)) for _ in range(4)}
    assert len(free) > 1


def held_to(form: Any, **options: Any) -> dict[str, Any]:
    return {"structured_outputs": StructuredOutputs(form=form, **options), "temperature": 1.0, "max_tokens": 60}


async def text_of(engine: LlamaCppEngine, tokenizer: GgufTokenizer, **sampling: Any) -> str:
    token_ids = await tokens(engine, PROMPT, seed=1, **sampling)
    return tokenizer.decode([token_id for token_id in token_ids if token_id not in (EOS, *OTHER_ENDS)])


async def test_outputs_have_the_form_that_was_asked_for(engine: LlamaCppEngine, tokenizer: GgufTokenizer) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}, "size": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "size"],
        "additionalProperties": False,
    }
    document = json.loads(await text_of(engine, tokenizer, **held_to(JsonSchema(schema))))
    assert document["city"] in ("Paris", "Rome")
    assert 1 <= document["size"] <= 9
    hard = ['say "yes"\n', "back\\slash", "🎉\t"]
    assert await text_of(engine, tokenizer, **held_to(Choice(hard))) in hard
    assert re.fullmatch("[ab]{3}", await text_of(engine, tokenizer, **held_to(Grammar("root ::= [ab]{3}"))))
    assert (await text_of(engine, tokenizer, **held_to(JsonObject()) | {"max_tokens": 5})).startswith("{")


async def test_scores_are_of_the_tokens_that_a_form_leaves(engine: LlamaCppEngine) -> None:
    """Same as vLLM: the likelihoods of what may come add up to one."""
    one_of_two = held_to(Grammar('root ::= "\\n" | "\\t"')) | {"max_tokens": 1}
    (row,) = rows_of(await answer(engine, asked(PROMPT, logprobs=2, **one_of_two)))
    assert sum(math.exp(value) for value in row.logprobs[1:]) == pytest.approx(1, abs=1e-5)


REFUSED = [
    (
        {"repetition_detection": RepetitionDetection(max_pattern_size=2, min_pattern_size=1, min_count=2)},
        "repetition_detection",
    ),
    ({"extra_args": {"x": 1}}, "vllm_xargs"),
    ({"extra_args": {"kv_transfer_params": {"x": 1}}}, "kv_transfer_params"),
    (held_to(Regex("a+")), "structured_outputs"),
    (held_to(StructuralTag({"type": "structural_tag", "format": {"type": "any_text"}})), "structured_outputs"),
    (held_to(Grammar("start: /a+/")), "structured_outputs"),
    (held_to(Grammar("root ::= [")), "structured_outputs"),
    (held_to(Grammar("root ::= nothing")), "structured_outputs"),
    (held_to(JsonSchema({"$ref": "https://x.invalid/schema"})), "structured_outputs"),
    (held_to(JsonSchema({"type": "nonsense"}), param="response_format"), "response_format"),
    (held_to(JsonObject(), whitespace_pattern=" "), "structured_outputs"),
]


@pytest.mark.parametrize(("fields", "param"), REFUSED)
async def test_what_it_does_not_do_is_refused_by_name(
    engine: LlamaCppEngine, fields: dict[str, Any], param: str
) -> None:
    beside = asyncio.create_task(answer(engine, asked(PROMPT)))
    with pytest.raises(RequestError) as refused:
        await answer(engine, asked(PROMPT, **fields))
    assert refused.value.param == param
    assert ids_of(await beside)
