"""LoRA adapters: small weights that a request may have added to the model's."""

from msgspec import Struct


class LoraAdapter(Struct, frozen=True, kw_only=True):
    """An adapter, as requests and engines know it."""

    name: str
    id: int
    """From 1. Engines tell adapters apart by it, so no two of one server ever have the same."""
    path: str
    """Where engines find it: a folder, or a name on the Hugging Face hub."""
    base_model_name: str | None = None
    """The served name that it is said to belong to. None: the first."""
    is_3d: bool = False
    """Whether the weights of experts are stored in one tensor per layer."""
