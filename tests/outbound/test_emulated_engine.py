"""The emulated engine core, message by message: it behaves like the real one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.msgpack import decode, encode  # noqa: TID251 (the wire is what is tested here)

from adapters.outbound.mock_engine.deterministic import DeterministicModel
from adapters.outbound.vllm_engine.emulated_engine import (
    INVALID,
    PAUSED,
    DraftMetrics,
    EmulatedEngine,
    Faults,
)
from adapters.outbound.vllm_engine.tensors import numbers
from adapters.outbound.vllm_engine.wire import (
    ABORT,
    ADD,
    UTILITY,
    EngineCoreOutput,
    EngineCoreOutputs,
    EngineCoreRequest,
    EngineLora,
    EngineSampling,
    EngineStructuredOutputs,
    FinishCode,
    OutputError,
    SpecDecodeMetrics,
    UtilityOutput,
    UtilityRequest,
)

VOCAB = 300
NO_FAULTS = Faults()
NOW = 12.5


class Bench:
    """An engine, and what it told."""

    def __init__(
        self,
        faults: Faults = NO_FAULTS,
        is_032: bool = True,
        tokens_per_step: int = 1,
        draft_metrics: DraftMetrics = "none",
    ) -> None:
        self.events: list[tuple[str, str]] = []
        self.engine = EmulatedEngine(
            3,
            DeterministicModel(VOCAB).start,
            lambda *event: self.events.append(event),
            vocab_size=VOCAB,
            tokens_per_step=tokens_per_step,
            is_032=is_032,
            faults=faults,
            draft_metrics=draft_metrics,
        )

    def call(self, method: str, *args: Any) -> Any:
        """What the call comes to: a value, or what was wrong."""
        ((_, frames),) = self.engine.receive(UTILITY, encode(UtilityRequest(0, 1, method, args)), NOW)
        outcome = outputs_of(frames).utility_output
        assert outcome is not None
        return outcome.failure_message or outcome.result[1]

    def add(
        self, request_id: str, client_index: int = 0, lora: EngineLora | None = None, **sampling: Any
    ) -> list[tuple[int, list[bytes]]]:
        params = EngineSampling(**{"max_tokens": 9, **sampling})
        request = EngineCoreRequest(request_id, [5, 6, 7], None, params, None, 0.0, lora, client_index=client_index)
        return self.engine.receive(ADD, encode(request), NOW)

    def step(self) -> dict[str, tuple[EngineCoreOutput, list[bytes]]]:
        """What one step brings, by request id."""
        return {
            output.request_id: (output, frames)
            for _, frames in self.engine.step(NOW)
            for output in outputs_of(frames).outputs
        }


def outputs_of(frames: list[bytes]) -> EngineCoreOutputs[EngineCoreOutput]:
    return decode(frames[0], type=EngineCoreOutputs[EngineCoreOutput])


def only(messages: list[tuple[int, list[bytes]]]) -> EngineCoreOutput:
    ((_, frames),) = messages
    (output,) = outputs_of(frames).outputs
    return output


def width(output: EngineCoreOutput) -> int:
    assert output.new_logprobs is not None
    _, columns = output.new_logprobs.token_ids.shape
    return int(columns)


def test_each_frontend_process_gets_one_message_a_step() -> None:
    bench = Bench()
    for request_id, client_index in (("a", 0), ("b", 1), ("c", 0)):
        assert bench.add(request_id, client_index) == []
    messages = {client: outputs_of(frames) for client, frames in bench.engine.step(NOW)}
    assert {client: [output.request_id for output in m.outputs] for client, m in messages.items()} == {
        0: ["a", "c"],
        1: ["b"],
    }
    assert {(m.engine_index, m.timestamp) for m in messages.values()} == {(3, NOW)}


def test_every_row_is_as_wide_as_the_widest_request_of_the_batch() -> None:
    bench = Bench()
    bench.add("narrow", logprobs=1)
    assert width(bench.step()["narrow"][0]) == 2
    bench.add("wide", logprobs=7)
    bench.add("none")
    step = bench.step()
    assert (width(step["narrow"][0]), width(step["wide"][0])) == (8, 8)
    assert step["none"][0].new_logprobs is None
    bench.engine.receive(ABORT, encode(["wide"]), NOW)
    assert width(bench.step()["narrow"][0]) == 2
    bench.add("whole", logprobs=-1)
    assert width(bench.step()["narrow"][0]) == VOCAB + 1


def test_scores_travel_in_place_when_small_and_in_frames_when_large() -> None:
    bench = Bench(tokens_per_step=4)
    bench.add("small", logprobs=1)
    (output, frames) = bench.step()["small"]
    assert len(frames) == 1
    bench.add("large", logprobs=20)
    (output, frames) = bench.step()["large"]
    assert len(frames) > 1
    assert output.new_logprobs is not None
    scores = output.new_logprobs
    assert (scores.token_ids.dtype, scores.logprobs.dtype, scores.ranks.dtype) == ("<i4", "<f4", "<i8")
    ids = numbers(scores.token_ids, frames).tolist()
    assert ids[::21] == list(output.new_token_ids)
    assert len(numbers(scores.ranks, frames)) == 4


@pytest.mark.parametrize(
    ("level", "told"),
    [
        ("none", None),
        ("summary", SpecDecodeMetrics(2, [0, 1, 1], 4)),
        ("detailed", SpecDecodeMetrics(2, [0, 1, 1], 4, [2, 1], [2, 2])),
    ],
)
def test_only_the_last_output_tells_of_drafts(level: DraftMetrics, told: SpecDecodeMetrics | None) -> None:
    """The first step has none; of the other two, one keeps both drafts and the last one of them."""
    bench = Bench(tokens_per_step=3, draft_metrics=level)
    bench.add("r", max_tokens=8)
    outputs = [bench.step()["r"][0] for _ in range(3)]
    assert [len(output.new_token_ids) for output in outputs] == [3, 3, 2]
    assert [output.spec_decode_metrics for output in outputs] == [None, None, told]


def test_only_the_first_output_tells_of_the_prompt() -> None:
    bench = Bench()
    bench.add("r", prompt_logprobs=2)
    first, frames = bench.step()["r"]
    assert first.new_prompt_logprobs_tensors is not None
    scores = first.new_prompt_logprobs_tensors
    assert (scores.token_ids.dtype, list(scores.token_ids.shape)) == ("int32", [2, 3])
    assert numbers(scores.token_ids, frames).tolist()[::3] == [6, 7]
    assert first.prefill_stats is not None
    assert (first.prefill_stats.num_prompt_tokens, first.prefill_stats.num_cached_tokens) == (3, 0)
    assert [event.type for event in first.events or ()] == [1, 2]
    later, _ = bench.step()["r"]
    assert (later.new_prompt_logprobs_tensors, later.prefill_stats, later.events) == (None, None, None)


def test_a_finished_request_is_gone() -> None:
    bench = Bench()
    bench.add("r", max_tokens=2)
    assert bench.step()["r"][0].finish_reason is None
    assert bench.step()["r"][0].finish_reason == FinishCode.LENGTH
    assert not bench.engine.has_work
    assert bench.step() == {}
    assert bench.events == [("admitted", "r"), ("finished", "r")]


def test_who_aborts_hears_no_more() -> None:
    bench = Bench()
    bench.add("stays")
    bench.add("goes")
    assert bench.engine.receive(ABORT, encode(["goes", "unknown"]), NOW) == []
    assert list(bench.step()) == ["stays"]
    assert bench.events[2:] == [("aborted", "goes"), ("abort ignored", "unknown")]


def test_shutting_down_aborts_what_runs() -> None:
    bench = Bench()
    bench.add("r", client_index=1)
    ((client_index, frames),) = bench.engine.shut_down(NOW)
    (output,) = outputs_of(frames).outputs
    assert (client_index, output.request_id, output.finish_reason) == (1, "r", FinishCode.ABORT)
    assert not bench.engine.has_work


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("get_supported_tasks", UtilityOutput(2**64 - 1, None, [None, ["generate"]])),
        ("sleep", UtilityOutput(2**64 - 1, "Call to sleep method failed: it is not emulated.")),
    ],
)
def test_utility_calls_are_answered(method: str, expected: UtilityOutput) -> None:
    ((client_index, frames),) = Bench().engine.receive(UTILITY, encode(UtilityRequest(2, 2**64 - 1, method)), NOW)
    assert client_index == 2
    assert outputs_of(frames).utility_output == expected


def test_adapters_come_and_go_by_calls(tmp_path: Path) -> None:
    bench = Bench()
    here, gone = str(tmp_path), f"{tmp_path}/gone"
    assert bench.call("add_lora", ["a", 1, here]) is True
    assert bench.call("add_lora", ["b", 2, here, None, False, False]) is True
    said = f"Call to add_lora method failed: Loading lora c failed: No adapter found for {gone}"
    assert bench.call("add_lora", ["c", 3, gone]) == said
    assert bench.call("list_loras") == [1, 2]
    assert bench.call("add_lora", ["a", 1, gone]) is True
    assert bench.call("add_lora", ["a", 1, gone, None, True]) == said.replace("lora c", "lora a")
    assert [bench.call("pin_lora", 1), bench.call("remove_lora", 1), bench.call("remove_lora", 1)] == [
        True,
        True,
        False,
    ]
    assert bench.call("pin_lora", 1) == "Call to pin_lora method failed: Adapter 1 is not loaded"
    assert bench.call("list_loras") == [2]


@pytest.mark.parametrize("args", [[], [1], [["a"]], [["a", 1, 2]], [["a", 1, "/"], 2]])
def test_a_call_with_other_arguments_fails(args: list[Any]) -> None:
    assert str(Bench().call("add_lora", *args)).startswith("Call to add_lora method failed: ")


def test_an_adapter_makes_another_text() -> None:
    bench = Bench()
    for request_id, lora in (("base", None), ("x", EngineLora("a", 1, "/p/x")), ("also x", EngineLora("b", 2, "/q/x"))):
        bench.add(request_id, lora=lora)
    texts: dict[str, list[int]] = {"base": [], "x": [], "also x": []}
    for _ in range(9):
        for request_id, (output, _) in bench.step().items():
            texts[request_id] += output.new_token_ids
    assert texts["base"] != texts["x"] == texts["also x"]


@pytest.mark.parametrize(("is_032", "positions"), [(True, 18), (False, 19)])
def test_an_output_is_as_long_as_its_version_writes_it(is_032: bool, positions: int) -> None:
    bench = Bench(is_032=is_032)
    bench.add("r")
    ((_, frames),) = bench.engine.step(NOW)
    ((*output,),) = decode(frames[0])[1]
    assert len(output) == positions


@pytest.mark.parametrize("error", [INVALID, PAUSED])
def test_a_refusal_says_why_since_033(error: OutputError) -> None:
    refused = only(Bench(Faults(refuses_with=error), is_032=False).add("r"))
    assert (refused.finish_reason, refused.error) == (FinishCode.ERROR, error)
    refused = only(Bench(Faults(refuses_with=error)).add("r"))
    assert (refused.finish_reason, refused.error) == (FinishCode.ERROR, None)


def test_a_form_of_the_output_is_refused_rather_than_passed_over() -> None:
    form = EngineStructuredOutputs(json_object=True, backend="xgrammar")
    refused = only(Bench(is_032=False).add("r", structured_outputs=form))
    assert refused.finish_reason == FinishCode.ERROR
    assert refused.error is not None
    assert (refused.error.code, refused.error.param) == ("validation_error", "structured_outputs")
    assert only(Bench().add("r", structured_outputs=form)).finish_reason == FinishCode.ERROR


def test_sampling_that_is_out_of_range_is_refused() -> None:
    refused = only(Bench(is_032=False).add("r", max_tokens=2, min_tokens=3))
    assert refused.finish_reason == FinishCode.ERROR
    assert refused.error is not None
    assert refused.error.code == "validation_error"


@pytest.mark.parametrize("code", [FinishCode.ERROR, FinishCode.ABORT])
def test_a_request_may_be_made_to_fail_after_some_tokens(code: FinishCode) -> None:
    bench = Bench(Faults(ends_in=code, ends_after=2))
    bench.add("r")
    outputs = [bench.step()["r"][0] for _ in range(3)]
    assert [len(output.new_token_ids) for output in outputs] == [1, 1, 0]
    assert [output.finish_reason for output in outputs] == [None, None, code]
    assert not bench.engine.has_work


def test_what_cannot_be_read_is_not_passed_over() -> None:
    with pytest.raises(msgspec.DecodeError):
        Bench().engine.receive(ADD, b"\xc1", NOW)
