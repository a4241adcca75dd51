"""How well drafts of an output were guessed, by an engine that checks several tokens in one step."""

from collections.abc import Sequence

from msgspec import Struct


class Speculation(Struct, frozen=True, gc=False):
    """The drafts of one request: each step checks some, keeps the first ones, and samples one token itself."""

    most_drafts: int
    """Of one step."""
    steps_by_kept: Sequence[int]
    """How many steps kept 0, 1, ... drafts."""
    drafted: int
    kept_by_step: Sequence[int] = ()
    """Empty where the engine does not tell, as is the next."""
    drafted_by_step: Sequence[int] = ()

    @property
    def steps(self) -> int:
        return sum(self.steps_by_kept)

    @property
    def kept(self) -> int:
        return sum(kept * steps for kept, steps in enumerate(self.steps_by_kept))

    @property
    def tokens_per_step(self) -> float:
        """On average. Same as vLLM: 1 without a step."""
        return 1 + self.kept / self.steps if self.steps else 1.0

    @property
    def kept_share(self) -> float:
        """Of the drafts. Same as vLLM: 0 without any."""
        return self.kept / self.drafted if self.drafted else 0.0
