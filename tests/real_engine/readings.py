"""How the tokens of a choice read: by the rules of docs/logprobs.md, worked out without any of Northbound's code, and
as vLLM's Python frontend has them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.real_engine.vocabulary import Vocabulary, as_text, unfinished

BROKEN = "\ufffd"


class Choice(NamedTuple):
    """What a choice is made of."""

    prompt: str | None
    """As it was sent; None where it was token ids."""
    prompt_ids: Sequence[int]
    output_ids: Sequence[int]
    """Empty where the prompt alone was asked for."""
    echo: bool
    hides_special: bool
    returns_ids: bool
    ends_by_token: bool
    """Whether its last token stopped it: the text lacks it then."""


class Place(NamedTuple):
    """A token where it stands."""

    token_id: int
    text: str
    """What it reads as."""
    offset: int
    held: bytes
    """What it, and any alternative to it, is read behind: bytes that no token before it carries."""
    their_held: bytes | None
    """The same for vLLM, which holds nothing of a prompt for the output, nor of its first token for the second. None
    where it reads a token alone."""
    is_output: bool
    is_unfinished: bool
    """Whether it carries the U+FFFD of a character that nothing completed."""


class Token(NamedTuple):
    """One of those that a text is joined of."""

    token_id: int
    content: bytes
    is_hidden: bool
    """Whether the text lacks it."""


class Reading:
    """A choice as the rules read it, and as vLLM does."""

    def __init__(self, choice: Choice, vocabulary: Vocabulary) -> None:
        self.choice = choice
        self._vocabulary = vocabulary
        self._prompt_tokens = [self._token(each, is_hidden=False) for each in choice.prompt_ids]
        self._output_tokens = [self._token(each, self._is_hidden(each)) for each in choice.output_ids]
        if choice.ends_by_token:
            self._output_tokens[-1] = self._output_tokens[-1]._replace(is_hidden=True)
        self.prompt = self._places_of_prompt()
        """Of every token of the prompt, echoed or not."""
        self.output = self._places_of_output()

    @property
    def places(self) -> Sequence[Place]:
        """Of the rows that are shown."""
        return [*self.prompt, *self.output] if self.choice.echo else self.output

    @property
    def is_begun_in_prompt(self) -> bool:
        """Whether the prompt ends inside a character that the output goes on with."""
        return bool(self._tail and self.choice.output_ids)

    @property
    def text(self) -> str:
        """Before a stop string is cut."""
        output = joined(self._output_tokens)
        if not self.choice.echo:
            return as_text(self._tail + output)
        if self.choice.prompt is None:
            return as_text(joined(self._prompt_tokens) + output)
        return self.choice.prompt + as_text(output)

    @property
    def their_text(self) -> str:
        """The echo is dropped beside token ids, as is a character that the output leaves unfinished. A prompt that ends
        inside a character comes once more, less its special tokens, with the token that completes it."""
        echo, output = "", joined(self._output_tokens)
        if self.choice.echo and not self.choice.returns_ids:
            echo = as_text(joined(self._prompt_tokens)) if self.choice.prompt is None else self.choice.prompt
        if self.is_begun_in_prompt:
            repeated = [self._token(each, self._is_hidden(each)) for each in self.choice.prompt_ids]
            output = joined(repeated) + output
        return echo + as_text(output[: len(output) - len(unfinished(output))])

    def text_at(self, place: Place, token_id: int) -> str:
        """What an alternative to the token there reads as."""
        content = self._vocabulary.bytes_of(token_id)
        if place.is_output and self._is_hidden(token_id):
            return as_text(content)
        return "" if unfinished(place.held + content) else as_text(place.held + content)

    def key_at(self, place: Place, token_id: int) -> str:
        """What an alternative to the token there is called among others."""
        content = self._vocabulary.bytes_of(token_id)
        return self.text_at(place, token_id) or "bytes:" + "".join(f"\\x{byte:02x}" for byte in content)

    def their_text_at(self, place: Place, token_id: int) -> str:
        """The token there or an alternative to it. What reads as a whole by itself is not read behind anything."""
        content = self._vocabulary.bytes_of(token_id)
        if place.their_held is None or not as_text(content).endswith(BROKEN):
            return as_text(content)
        text = as_text(place.their_held + content)
        return "" if text.endswith(BROKEN) else text

    @property
    def _tail(self) -> bytes:
        return unfinished(joined(self._prompt_tokens)) if self.choice.prompt is None else b""

    def _token(self, token_id: int, is_hidden: bool) -> Token:
        return Token(token_id, self._vocabulary.bytes_of(token_id), is_hidden)

    def _is_hidden(self, token_id: int) -> bool:
        return self.choice.hides_special and self._vocabulary.is_special(token_id)

    def _places_of_prompt(self) -> Sequence[Place]:
        tokens = self._prompt_tokens
        their_held = [None, *held_before(tokens[1:], b"")]
        ends = self.choice.echo and not self.choice.output_ids
        return list(places(tokens, b"", their_held, is_output=False, ends=ends))

    def _places_of_output(self) -> Sequence[Place]:
        tokens, begun, offset = self._output_tokens, self._tail, 0
        if self.choice.echo:
            begun = held_before(self._prompt_tokens, b"")[-1] if self.choice.prompt is None else b""
            offset = sum(len(place.text) for place in self.prompt)
        return list(places(tokens, begun, held_before(tokens, b""), is_output=True, ends=True, offset=offset))


def joined(tokens: Sequence[Token]) -> bytes:
    """What is shown of them."""
    return b"".join(token.content for token in tokens if not token.is_hidden)


def held_before(tokens: Sequence[Token], begun: bytes) -> list[bytes]:
    """What is held before each token, and behind the last."""
    held = [begun]
    for token in tokens:
        content = held[-1] + token.content
        held.append(held[-1] if token.is_hidden else content if unfinished(content) else b"")
    return held


def places(
    tokens: Sequence[Token],
    begun: bytes,
    their_held: Sequence[bytes | None],
    *,
    is_output: bool,
    ends: bool,
    offset: int = 0,
) -> Iterator[Place]:
    """With `ends`, the last token carries what is held still."""
    held = held_before(tokens, begun)
    for index, token in enumerate(tokens):
        is_last = ends and index == len(tokens) - 1
        carried = "" if token.is_hidden or held[index + 1] else as_text(held[index] + token.content)
        if is_last:
            carried += as_text(held[index + 1])
        text = carried + (as_text(token.content) if token.is_hidden else "")
        is_unfinished = is_last and held[index + 1] != b""
        yield Place(token.token_id, text, offset, held[index], their_held[index], is_output, is_unfinished)
        offset += len(carried)
