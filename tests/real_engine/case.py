"""One question, two answers to it, and what each of them must say."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from tests.real_engine.answers import Json
from tests.real_engine.parity import Path
from tests.real_engine.questions import Question
from tests.real_engine.readings import Choice, Place, Reading
from tests.real_engine.vocabulary import Vocabulary, placeholder, token_id

Scores = Sequence[tuple[int, float]]
"""Token ids in the order in which they are shown, each once, the token at the position first."""


class Entry(NamedTuple):
    """A token that an answer shows somewhere."""

    reading: Reading
    place: Place
    token_id: int
    is_alternative: bool = False

    @property
    def text(self) -> str:
        return self.reading.text_at(self.place, self.token_id) if self.is_alternative else self.place.text

    @property
    def key(self) -> str:
        return self.reading.key_at(self.place, self.token_id) if self.is_alternative else self.place.text

    @property
    def their_text(self) -> str:
        return self.reading.their_text_at(self.place, self.token_id)


class Row(NamedTuple):
    """One position's tokens and scores, the token itself first where there are alternatives."""

    ours: Sequence[tuple[Entry, float]]
    theirs: Sequence[tuple[Entry, float]]

    def shown(self, as_ids: bool) -> Mapping[str, float]:
        """Of two that read the same, the first stays."""
        keys: dict[str, float] = {}
        for entry, logprob in self.ours:
            keys.setdefault(placeholder(entry.token_id) if as_ids else entry.key, logprob)
        return keys

    def shown_by_them(self, as_ids: bool) -> Mapping[str, float]:
        """Of two that read the same, the last stays, in the place of the first."""
        return {placeholder(entry.token_id) if as_ids else entry.their_text: logprob for entry, logprob in self.theirs}


class Case:
    """Northbound's answer beside vLLM's: both whole, or both assembled from chunks."""

    def __init__(self, question: Question, ours: Json, theirs: Json, as_ids: Json, vocabulary: Vocabulary) -> None:
        """`as_ids` is Northbound's whole answer to the same question with ids for tokens."""
        self.question = question
        self.ours = ours
        self.theirs = theirs
        self.vocabulary = vocabulary
        self.as_ids = as_ids

    @property
    def shows_ids(self) -> bool:
        return bool(self.question.body.get("return_tokens_as_token_ids"))

    @cached_property
    def readings(self) -> Sequence[Reading]:
        """Of each choice."""
        return [
            Reading(self._choice(prompt, choice), self.vocabulary)
            for prompt, choice in zip(self.question.prompts, self.as_ids["choices"], strict=True)
        ]

    def entry(self, path: Path) -> Entry | None:
        """The token whose text or bytes stand there."""
        match path:
            case ("choices", int(index), "logprobs", "tokens", int(row)):
                return self.token(index, row)
            case ("choices", int(index), "logprobs", "content", int(row), "token" | "bytes"):
                return self.token(index, row)
            case ("choices", int(index), "logprobs", "content", int(row), "top_logprobs", int(column), _):
                return self._entries(index, row, self._scores(index, row))[column][0]
            case ("choices", int(index), "prompt_logprobs", int(row), str(key), "decoded_token"):
                return self.prompt_token(index, row, int(key))
            case ("prompt_logprobs", int(row), str(key), "decoded_token"):
                return self.prompt_token(0, row, int(key))
        return None

    def token(self, index: int, row: int) -> Entry:
        """The token at a row of a choice."""
        reading = self.readings[index]
        place = reading.places[row]
        return Entry(reading, place, place.token_id)

    def prompt_token(self, index: int, row: int, token_id: int) -> Entry:
        """The token at a place of a choice's prompt, or an alternative to it."""
        reading = self.readings[index]
        place = reading.prompt[row]
        return Entry(reading, place, token_id, is_alternative=token_id != place.token_id)

    def row(self, index: int, row: int) -> Row:
        """The token at a row of a choice, and its alternatives."""
        scores = self._scores(index, row)
        theirs, body = scores, self.question.body
        if body.get("echo") and body.get("prompt_logprobs") is not None and row < len(self.readings[index].prompt):
            # they cut the echoed rows out of what was asked for by that name
            wide = self.as_ids["choices"][index]["prompt_logprobs"][row] or {}
            theirs = [(int(key), cell["logprob"]) for key, cell in wide.items()][: body["logprobs"] + 1]
        return Row(self._entries(index, row, scores), self._entries(index, row, theirs))

    def _choice(self, prompt: str | None, choice: Json) -> Choice:
        body = self.question.body
        return Choice(
            prompt=prompt,
            prompt_ids=(self.as_ids if self.question.is_chat else choice)["prompt_token_ids"],
            output_ids=choice["token_ids"],
            echo=bool(body.get("echo")),
            hides_special=body.get("skip_special_tokens", True),
            returns_ids=bool(body.get("return_token_ids")),
            ends_by_token=choice["finish_reason"] == "stop" and not isinstance(choice["stop_reason"], str),
        )

    def _entries(self, index: int, row: int, scores: Scores) -> Sequence[tuple[Entry, float]]:
        reading = self.readings[index]
        place = reading.places[row]
        return [
            (Entry(reading, place, token_id, is_alternative=token_id != place.token_id), logprob)
            for token_id, logprob in scores
        ]

    def _scores(self, index: int, row: int) -> Scores:
        logprobs = self.as_ids["choices"][index]["logprobs"]
        if self.question.is_chat:
            return [(token_id(each["token"]), each["logprob"]) for each in logprobs["content"][row]["top_logprobs"]]
        return [(token_id(shown), logprob) for shown, logprob in (logprobs["top_logprobs"][row] or {}).items()]
