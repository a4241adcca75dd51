"""Which generations are under way, to call them off by the id of their request."""

from collections.abc import Sequence

from application.services.text_generation import TextGeneration


class Running:
    """Generations from their start to their end, by what the caller knows them as: several may have one id."""

    def __init__(self) -> None:
        self._generations: dict[str, set[TextGeneration]] = {}

    def add(self, request_id: str, generation: TextGeneration) -> None:
        def forget() -> None:
            generations.discard(generation)
            if not generations:
                self._generations.pop(request_id, None)

        generations = self._generations.setdefault(request_id, set())
        generations.add(generation)
        generation.on_end = forget

    async def abort(self, request_ids: Sequence[str]) -> None:
        """They end with what they have so far. Ids that nothing runs under are nothing to abort."""
        for request_id in request_ids:
            for generation in tuple(self._generations.get(request_id, ())):
                generation.abort()
