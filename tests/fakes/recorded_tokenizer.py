"""As much of a model's vocabulary as was used once."""

from collections.abc import Mapping, Sequence

from application.ports.tokenizer import Tokenizer
from domain.token_text import TokenPiece


class RecordedTokenizer(Tokenizer):
    """Encodes the texts of `encodings`, and no others; has the entries of `contents`, and no others."""

    def __init__(
        self, encodings: Mapping[str, Sequence[int]], contents: Mapping[int, bytes], specials: Sequence[int]
    ) -> None:
        self._encodings = encodings
        self._contents = contents.values()
        self._pieces = {
            token_id: TokenPiece.of(content, is_special=token_id in specials) for token_id, content in contents.items()
        }

    @property
    def longest_entry(self) -> int:
        return max(map(len, self._contents))

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        return list(self._encodings[text])

    def encode_offsets(self, text: str, *, add_special_tokens: bool) -> list[int]:
        raise NotImplementedError("The recorded texts are what their tokens join to.")

    def decode(self, token_ids: Sequence[int]) -> str:
        return b"".join([self.piece(token_id).content for token_id in token_ids]).decode(errors="replace")

    def entry(self, token_id: int) -> str:
        raise NotImplementedError("No vocabulary was recorded, but what its entries read as.")

    def piece(self, token_id: int) -> TokenPiece:
        return self._pieces[token_id]

    def starting_piece(self, token_id: int) -> TokenPiece:
        return self._pieces[token_id]
