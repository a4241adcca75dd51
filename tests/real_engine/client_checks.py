"""What other people's programs must make of a server: the same as of vLLM's own."""

from collections.abc import Sequence

import pytest

from tests.real_engine.answers import Json
from tests.real_engine.lm_eval_runs import WAYS
from tests.real_engine.openai_calls import CALLS, Call, Calls
from tests.real_engine.parity import Difference, anonymous, differences
from tests.real_engine.recording import Records

each_call = pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)


class ServesClientsAlike:
    """The checks of one server, whose module has the fixtures `records` and `reference`."""

    @each_call
    def test_openai_gets_what_vllm_gives(self, records: Records, reference: Records, call: Call) -> None:
        assert not unmeant(call, records.calls, reference.calls)

    @each_call
    def test_openai_gets_the_same_asynchronously(
        self, called_asynchronously: Calls, reference: Records, call: Call
    ) -> None:
        assert not unmeant(call, called_asynchronously, reference.calls)

    def test_openai_is_refused_as_by_vllm(self, records: Records, reference: Records) -> None:
        assert records.refusals == reference.refusals

    @pytest.mark.parametrize("way", WAYS)
    def test_lm_eval_scores_as_with_vllm(self, records: Records, reference: Records, way: str) -> None:
        assert not list(differences(records.runs[way]._asdict(), reference.runs[way]._asdict()))

    @pytest.mark.parametrize("way", WAYS[1:])
    def test_lm_eval_scores_alike_however_it_asks(self, records: Records, way: str) -> None:
        assert not list(differences(records.runs[way]._asdict(), records.runs[WAYS[0]]._asdict()))

    def test_lm_eval_scores_something(self, records: Records) -> None:
        """A likely ending is found more often than by chance, and text is easier than noise."""
        scores = records.runs[WAYS[0]].scores

        assert 0.25 < scores["everyday"]["acc"] < scores["everyday"]["acc_norm"] < 1
        assert 0 < scores["notes"]["bits_per_byte"] < 2


def unmeant(call: Call, ours: Calls, theirs: Calls) -> Sequence[Difference]:
    """Where the answers to a call differ, but for what docs/compatibility.md tells."""
    return [
        difference
        for our_body, their_body in zip(ours[call.name], theirs[call.name], strict=True)
        for difference in differences(nameless(our_body), nameless(their_body))
        if not (call.shows_ids and difference.path[-1] == "text_offset")
    ]


def nameless(body: Json | None) -> Json | None:
    return anonymous(body) if body and "id" in body else body
