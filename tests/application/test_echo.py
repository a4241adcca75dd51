"""The prompt, repeated before the output (contract 2.4 and 6)."""

from msgspec.structs import replace

from adapters.outbound.mock_engine.scripted import Script, steps
from application.services.text_generation import TextGeneration
from domain.generation import FinishReason, TextDelta, TokenDelta
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams
from tests.application.serving import EOS, completion, read, serve

SCORED = SamplingParams(logprobs=1, prompt_logprobs=1, max_tokens=4)


def after_prompt(prompt: list[int], output: Script) -> Script:
    """`output` with scores of the prompt's tokens from the second on, each with one alternative: its id plus one."""
    assert isinstance(output, list)
    ids = [shown for token_id in prompt[1:] for shown in (token_id, token_id + 1)]
    columns = LogprobColumns(2, ids, [-0.5] * len(ids), [1] * (len(prompt) - 1))
    return [replace(output[0], prompt_logprobs=columns), *output[1:]]


def text_of(generation: TextGeneration, deltas: list[TextDelta]) -> str:
    assert generation.echo is not None
    return generation.echo + "".join(delta.text for delta in deltas)


def rows_of(generation: TextGeneration, deltas: list[TextDelta]) -> tuple[list[str], list[int]]:
    """Texts and offsets of all rows, the prompt's first."""
    assert generation.echo is not None
    assert generation.scored_prompt is not None
    scored = [generation.scored_prompt, *[delta.scored for delta in deltas if delta.scored is not None]]
    return [text for rows in scored for text in rows.texts], [offset for rows in scored for offset in rows.offsets]


async def test_a_text_prompt_is_echoed_as_it_was_sent() -> None:
    served = serve(after_prompt([*b"ab"], steps(104, 33)))

    generation = await served(completion("ab", SCORED, echo=True))
    deltas = await read(generation)

    assert text_of(generation, deltas) == "abh!"
    assert rows_of(generation, deltas) == (["a", "b", "h", "!"], [0, 1, 2, 3])


async def test_its_rows_have_the_engines_scores_and_the_first_has_none() -> None:
    served = serve(after_prompt([*b"abc"], steps(104)))

    generation = await served(completion("abc", SCORED, echo=True))
    await read(generation)

    assert generation.echo is not None
    assert generation.scored_prompt is not None
    assert generation.scored_prompt.unscored == 1
    assert generation.scored_prompt.columns == LogprobColumns(2, [98, 99, 99, 100], [-0.5] * 4, [1, 1])


async def test_a_prompt_of_one_token_is_a_row_without_a_score() -> None:
    served = serve(steps(104))

    generation = await served(completion("a", SCORED, echo=True))
    deltas = await read(generation)

    assert rows_of(generation, deltas) == (["a", "h"], [0, 1])
    assert generation.echo is not None
    assert generation.scored_prompt is not None
    assert generation.scored_prompt.unscored == 1


async def test_token_ids_are_echoed_decoded_with_special_tokens_shown() -> None:
    prompt = [EOS, 97, 0xC3, 0xA9]
    served = serve(after_prompt(prompt, steps(104)))

    generation = await served(completion(prompt, SCORED, echo=True))
    deltas = await read(generation)

    assert text_of(generation, deltas) == "<|eos|>aéh"
    assert rows_of(generation, deltas) == (["<|eos|>", "a", "", "é", "h"], [0, 7, 8, 8, 9])


async def test_output_completes_a_character_that_the_prompt_begins() -> None:
    prompt = [97, 0xF0, 0x9F]
    served = serve(after_prompt(prompt, steps(0x8E, 0x89, 33)))

    generation = await served(completion(prompt, SCORED, echo=True))
    deltas = await read(generation)

    assert text_of(generation, deltas) == "a🎉!"
    assert rows_of(generation, deltas) == (["a", "", "", "", "🎉", "!"], [0, 1, 1, 1, 1, 2])


async def test_it_does_so_without_echo() -> None:
    served = serve(steps(0x8E, 0x89, 33))

    deltas = await read(await served(completion([97, 0xF0, 0x9F], SCORED)))

    assert [delta.text for delta in deltas] == ["", "🎉", "!"]
    assert [list(delta.scored.offsets) for delta in deltas if delta.scored] == [[0], [0], [1]]


async def test_without_echo_offsets_start_at_nought() -> None:
    served = serve(steps(104, 33))

    deltas = await read(await served(completion("a long prompt", SCORED)))

    assert [list(delta.scored.offsets) for delta in deltas if delta.scored] == [[0], [1]]


async def test_without_scores_the_text_is_echoed_alone() -> None:
    generation = await serve(steps(104))(completion("ab", echo=True))

    deltas = await read(generation)

    assert generation.echo is not None
    assert generation.scored_prompt is None
    assert text_of(generation, deltas) == "abh"


async def test_there_is_none_unless_asked_for() -> None:
    generation = await serve(steps(104))(completion("ab", SCORED))

    await read(generation)

    assert generation.echo is None


class TestPromptOnly:
    """Contract 6.3: the prompt alone; the token that the engine samples all the same is in nothing."""

    ONE = SamplingParams(max_tokens=1, logprobs=1, prompt_logprobs=1)

    async def test_no_output_is_in_text_rows_ids_or_usage(self) -> None:
        served = serve(after_prompt([*b"ab"], steps(104)))

        generation = await served(completion("ab", self.ONE, echo=True, prompt_only=True))
        deltas = await read(generation)

        assert text_of(generation, deltas) == "ab"
        assert rows_of(generation, deltas) == (["a", "b"], [0, 1])
        assert [(list(delta.token_ids), delta.finish_reason) for delta in deltas] == [([], FinishReason.LENGTH)]
        assert (generation.usage.prompt_tokens, generation.usage.completion_tokens) == (2, 0)

    async def test_an_engine_that_goes_on_is_stopped(self) -> None:
        served = serve(after_prompt([*b"ab"], steps(104, 105, 106)))

        await read(await served(completion("ab", self.ONE, echo=True, prompt_only=True)))

        assert served.engine.aborted == ["r-0"]
        assert served.is_idle

    async def test_however_the_engine_ended_its_token_the_finish_is_the_length(self) -> None:
        served = serve(steps(EOS, finish_reason=FinishReason.STOP))

        deltas = await read(await served(completion("a", self.ONE, echo=True, prompt_only=True)))

        assert [(delta.finish_reason, delta.stop_reason) for delta in deltas] == [(FinishReason.LENGTH, None)]
        assert served.metrics.reasons == ["length"]

    async def test_a_character_that_nothing_completes_is_a_replacement(self) -> None:
        prompt = [97, 0xF0]
        served = serve(after_prompt(prompt, steps(0x9F)))

        generation = await served(completion(prompt, self.ONE, echo=True, prompt_only=True))
        deltas = await read(generation)

        assert text_of(generation, deltas) == "a\ufffd"
        assert rows_of(generation, deltas) == (["a", "\ufffd"], [0, 1])

    async def test_an_engine_that_aborts_instead_is_told_of(self) -> None:
        served = serve([TokenDelta([], finish_reason=FinishReason.ABORT)])

        deltas = await read(await served(completion("a", self.ONE, echo=True, prompt_only=True)))

        assert [delta.finish_reason for delta in deltas] == [FinishReason.ABORT]
        assert served.metrics.reasons == ["abort"]

    async def test_it_needs_no_scores(self) -> None:
        served = serve([TokenDelta([104], finish_reason=FinishReason.LENGTH)])

        generation = await served(completion("ab", SamplingParams(max_tokens=1), echo=True, prompt_only=True))
        deltas = await read(generation)

        assert [delta.scored for delta in deltas] == [None]
        assert text_of(generation, deltas) == "ab"
