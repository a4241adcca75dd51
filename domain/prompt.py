"""A prompt in tokens, and how much can follow it."""

from collections.abc import Sequence

from msgspec import Struct

from domain.errors import RequestError


class PromptNotServable(RequestError):
    """The prompt is empty."""


class OutOfVocabulary(RequestError):
    """A token id that the model lacks."""


class PromptTooLong(RequestError):
    """The prompt leaves no room in the model's context."""


class TooManyTokens(RequestError):
    """More tokens were asked for than the model's context holds."""


class Prompt(Struct, frozen=True, gc=False):
    """What a generation starts from."""

    token_ids: Sequence[int]
    text: str | None = None
    """As the caller sent it or the template rendered it; None when the caller sent token ids."""
    offsets: Sequence[int] | None = None
    """Where each token starts in `text`, in characters, if its tokens do not read as it; None: where they end up."""

    def truncated(self, tokens: int, keeps_end: bool) -> "Prompt":
        """The first or the last so many tokens. What is cut is a token sequence, no text any more."""
        if tokens >= len(self.token_ids):
            return self
        return Prompt(self.token_ids[len(self.token_ids) - tokens :] if keeps_end else self.token_ids[:tokens])

    def check(self, vocab_size: int, max_model_len: int, param: str) -> None:
        """Refuse what no model of that vocabulary and context can take; `param` names the request field."""
        if not self.token_ids:
            raise PromptNotServable("The prompt must hold at least one token.", param)
        if self.text is None:
            check_in_vocabulary(param, self.token_ids, vocab_size)
        if len(self.token_ids) >= max_model_len:
            raise PromptTooLong(
                f"This model's maximum context length is {max_model_len} tokens, but the prompt has "
                f"{len(self.token_ids)} tokens, which leaves no room for output. Please shorten the prompt.",
                param,
            )

    def max_tokens(self, requested: int | None, max_model_len: int, param: str) -> int:
        """How many tokens may follow: what was asked for, else and at most what fits. Same as vLLM, which refuses
        only what could never fit."""
        if requested is not None and requested > max_model_len:
            raise TooManyTokens(
                f"{param} of {requested} is greater than the model's maximum context length, {max_model_len}.", param
            )
        room = max_model_len - len(self.token_ids)
        return room if requested is None else min(requested, room)


class Room(Struct, frozen=True):
    """What a prompt has to fit into."""

    max_model_len: int
    param: str
    """The request field that has the prompt."""

    def check(self, text: str, longest_token: int) -> None:
        """Refuse a text that is too long whatever its tokens are, before finding them takes time. Same as vLLM: a
        token stands for at most `longest_token` characters."""
        most = self.max_model_len * longest_token
        if len(text) > most:
            raise PromptTooLong(
                f"This model's maximum context length is {self.max_model_len} tokens, but the prompt has {len(text)} "
                f"characters, more than the {most} that so many tokens can stand for. Please shorten the prompt.",
                self.param,
            )


def check_in_vocabulary(param: str, token_ids: Sequence[int], vocab_size: int) -> None:
    """Refuse ids that the model lacks; `param` names the request field that has them."""
    for worst in (min(token_ids, default=0), max(token_ids, default=0)):
        if not 0 <= worst < vocab_size:
            message = f"{param} has token id {worst}, which is out of vocabulary: the model has {vocab_size} tokens."
            raise OutOfVocabulary(message, param)
