"""What people reported of servers' logprobs, asked of a real model."""

from tests.real_engine.answers import Asker, Json, assembled
from tests.real_engine.checks import both_ways
from tests.real_engine.questions import Question, chat, completion
from tests.real_engine.vocabulary import Vocabulary, as_text

BYTE_LETTERS = {chr(letter) for letter in range(0x100, 0x144)}
"""What byte-level BPE writes for bytes that cannot be printed: `Ġ` for a space, `Ċ` for a line feed."""


class ServesLogprobs:
    """The checks of one server, whose module has the fixture `asker`."""

    @both_ways
    def test_tokens_are_readable(self, asker: Asker, streamed: bool) -> None:
        greeting = chat("greeting", "你好吗", logprobs=True, top_logprobs=5, max_tokens=8)

        choice = only_choice(asker, greeting, streamed)

        content = choice["logprobs"]["content"]
        assert as_text(b"".join(bytes(row["bytes"]) for row in content)) == choice["message"]["content"]
        shown = [(each["token"], bytes(each["bytes"])) for row in content for each in [row, *row["top_logprobs"]]]
        assert len(shown) == 8 * (1 + 5)
        for token, own in shown:
            assert not BYTE_LETTERS & set(token)
            # it reads as its bytes, behind those that are held; as nothing if it is part of a character
            assert token.encode().endswith(own) or not token.strip("\ufffd")

    @both_ways
    def test_the_token_itself_comes_before_the_likely_ones(
        self, asker: Asker, vocabulary: Vocabulary, streamed: bool
    ) -> None:
        knitting = completion("knitting", "Knitting needs two", echo=True, logprobs=5, max_tokens=1)

        logprobs = only_choice(asker, knitting, streamed)["logprobs"]

        assert logprobs["token_logprobs"][0] is None
        assert logprobs["top_logprobs"][0] is None
        prompt_tokens = len(vocabulary.encode("Knitting needs two"))
        rows = list(zip(*(logprobs[key][1:] for key in ("tokens", "token_logprobs", "top_logprobs")), strict=True))
        assert len(rows) == prompt_tokens
        for token, logprob, top in rows:
            (first, *others) = top.items()
            assert first == (token, logprob)
            assert [value for _, value in others] == sorted((value for _, value in others), reverse=True)
            assert len(top) in (5, 6)
        assert len(rows[0][2]) == 6  # not among the five likeliest

    def test_prompt_logprobs_begin_with_the_real_token(self, asker: Asker, vocabulary: Vocabulary) -> None:
        letters = completion("letters", "a b c", prompt_logprobs=2, max_tokens=1)

        first, *maps = only_choice(asker, letters, streamed=False)["prompt_logprobs"]

        assert first is None
        assert [next(iter(cells)) for cells in maps] == [str(each) for each in vocabulary.encode("a b c")[1:]]
        assert [next(iter(cells.values()))["decoded_token"] for cells in maps] == [" b", " c"]
        for cells in maps:
            real, *others = cells.values()
            ranks = [cell["rank"] for cell in others]
            assert ranks == [rank for rank in (1, 2) if rank != real["rank"] or real["rank"] > 2]
            assert all(cell["logprob"] <= 0 for cell in cells.values())

    @both_ways
    def test_echoed_tokens_are_scored(self, asker: Asker, streamed: bool, vocabulary: Vocabulary) -> None:
        choice = only_choice(asker, completion("sum", "Q: 2+2? A: 4", echo=True, logprobs=1, max_tokens=1), streamed)

        logprobs = choice["logprobs"]
        assert choice["text"].startswith("Q: 2+2? A: 4")
        assert len(logprobs["tokens"]) == len(vocabulary.encode("Q: 2+2? A: 4")) + 1
        assert logprobs["token_logprobs"][0] is None
        assert all(logprob < 0 for logprob in logprobs["token_logprobs"][1:])

    @both_ways
    def test_echoed_tokens_join_to_the_text(self, asker: Asker, vocabulary: Vocabulary, streamed: bool) -> None:
        prompt = "\n2) Bo owns 17"

        choice = only_choice(asker, completion("second", prompt, echo=True, logprobs=1, max_tokens=3), streamed)

        tokens = choice["logprobs"]["tokens"]
        assert "".join(tokens) == choice["text"]
        pieces = [as_text(vocabulary.bytes_of(each)) for each in vocabulary.encode(prompt)]
        assert tokens[: len(pieces)] == pieces


def only_choice(asker: Asker, question: Question, streamed: bool) -> Json:
    (choice,) = (assembled(asker.ask_streamed(question)) if streamed else asker.ask(question))["choices"]
    return choice
