"""What must hold of every stream: the answers are the contract's, and hold together whatever the contract's reading."""

from collections.abc import Sequence
from typing import Any

from domain.generation import FinishReason
from tests.exactness.client import Answer, Choice, Client
from tests.exactness.reference import Choice as Expected
from tests.exactness.reference import Reference, references_of
from tests.exactness.streams import ASKED, Stream
from tests.exactness.utf8 import read, whole
from tests.exactness.vocabularies import Vocabulary


async def check(stream: Stream, vocabulary: Vocabulary, client: Client) -> None:
    """Ask for the stream whole and in chunks, in both displays, each time from other steps. Raises AssertionError."""
    whole_answers = []
    for (shows_ids, is_streamed), sizes in zip(ASKED, stream.cuts, strict=True):
        answer = await client.ask(stream, sizes, shows_ids=shows_ids, is_streamed=is_streamed)
        references = references_of(stream, vocabulary, shows_ids)
        check_usage(answer, references, stream)
        for prompt, reference in enumerate(references):
            expected = reference.chunks(sizes) if is_streamed else [reference.choice()]
            check_choices(answer.choices[prompt], expected, reference, stream, is_streamed)
        if not is_streamed:
            scores = [reference.prompt_logprobs() for reference in references]
            check_equal("prompt_logprobs", answer.prompt_logprobs, scores)
            whole_answers.append(answer)
    for prompt, reference in enumerate(references):
        by_text, by_id = (answer.choices[prompt][0] for answer in whole_answers)
        check_displays(by_text, by_id)
        check_by_itself(by_text, reference, stream)


def check_equal(what: str, got: Any, expected: Any) -> None:
    assert got == expected, f"{what}:\n  got      {got!r}\n  expected {expected!r}"


def check_usage(answer: Answer, references: Sequence[Reference], stream: Stream) -> None:
    """Contract 7.3."""
    prompt = sum(len(reference.meaning.prompt) for reference in references)
    completion = 0 if stream.prompt_only else sum(reference.meaning.end.kept for reference in references)
    check_equal("usage", answer.usage, (prompt, completion))


def check_choices(
    got: Sequence[Choice], expected: Sequence[Expected], reference: Reference, stream: Stream, is_streamed: bool
) -> None:
    check_equal("texts", [each.text for each in got], [each.text for each in expected])
    for place, (one, other) in enumerate(zip(got, expected, strict=True)):
        check_equal("rows", one.rows, other.rows if stream.alternatives is not None else None)
        check_equal("token ids", one.token_ids, other.token_ids if stream.return_token_ids else None)
        check_equal("finish", one.finish_reason, other.finish_reason)
        check_equal("stop reason", one.stop_reason, other.stop_reason)
        shows_prompt = stream.return_token_ids or (stream.echo and is_streamed)
        is_first = stream.is_chat or not place
        prompt = [position.token_id for position in reference.meaning.prompt] if shows_prompt and is_first else None
        check_equal("prompt token ids", one.prompt_token_ids, prompt)


def check_displays(by_text: Choice, by_id: Choice) -> None:
    """Contract 1.3: a display changes the strings that stand for tokens, and nothing else."""
    check_equal("the answer apart from its rows", by_text._replace(rows=None), by_id._replace(rows=None))
    for one, other in zip(by_text.rows or [], by_id.rows or [], strict=True):
        if isinstance(one, dict):
            check_equal("an entry by text and by id", _anonymous(one), _anonymous(other))
        else:
            check_equal("a row by text and by id", (one[1], one[3]), (other[1], other[3]))
            values = [value for _, value in other[2] or ()]
            assert all(value in values for _, value in one[2] or ()), f"{one} has values that {other} lacks"


def _anonymous(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"token": None, "top_logprobs": [each | {"token": None} for each in entry["top_logprobs"]]}


def check_by_itself(answer: Choice, reference: Reference, stream: Stream) -> None:
    """Contract 2.1, 2.2, 3.1 and 5.4 of an answer that no stop string cut, without the reference's reading of rows."""
    if reference.meaning.end.is_by_string or stream.prompt_only or answer.rows is None:
        return
    output_rows = answer.rows[len(answer.rows) - len(stream.token_ids) :]
    shown = [position.is_shown for position in reference.meaning.output]
    if stream.is_chat:
        joined = b"".join(bytes(row["bytes"]) for row, is_shown in zip(output_rows, shown, strict=True) if is_shown)
        expected = whole(joined) if stream.finish is FinishReason.ABORT else read(joined)
        check_equal("the text of the joined bytes", answer.text, expected)
        return
    if stream.echo and isinstance(reference.meaning.given, str):
        return
    rows = [(row, True) for row in answer.rows[: len(answer.rows) - len(output_rows)]]
    rows += zip(output_rows, shown, strict=True)
    for (token, *_, offset), is_shown in rows:
        if is_shown:
            check_equal("the text at an offset", answer.text[offset : offset + len(token)], token)
    if shown[-1] or not answer.text.endswith("\ufffd"):
        texts = "".join(row[0] for row, is_shown in rows if is_shown)
        pending = answer.text[len(texts) :] if stream.finish is FinishReason.ABORT else ""
        check_equal("the joined token texts", texts + pending, answer.text)
