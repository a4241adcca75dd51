"""Our encoders and decoders against vLLM's, as recorded by record.py."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from adapters.outbound.vllm_engine.outputs import RefusedByEngine, delta_of, failure_of
from adapters.outbound.vllm_engine.requests import engine_request
from adapters.outbound.vllm_engine.row_forms import read_row
from adapters.outbound.vllm_engine.wire import (
    EngineAddresses,
    EngineCoreOutput,
    EngineCoreOutputs,
    EngineCoreRequest,
    EngineInit,
    EngineReady,
    decode,
    encode,
)
from application.ports.engine import EngineUnavailable
from domain.errors import EngineFailure
from domain.generation import FinishReason, TokenDelta, TransferParams
from domain.logprobs import LogprobColumns
from domain.sampling import SamplingParams
from domain.speculation import Speculation
from domain.structured_outputs import Regex, StructuredOutputs
from domain.timing import EngineStart
from tests.wire.cases import ARRIVAL_TIME, REQUESTS

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text())


def frames_of(name: str) -> list[bytes]:
    return [bytes.fromhex(frame) for frame in GOLDEN["outputs"][name]]


def message_of(name: str) -> EngineCoreOutputs[EngineCoreOutput]:
    return decode(frames_of(name)[0], EngineCoreOutputs[EngineCoreOutput])


def output_of(name: str) -> EngineCoreOutput:
    """The last one of the message."""
    return message_of(name).outputs[-1]


def delta(name: str, is_first: bool = True, produced_at: float = 0.0, **wanted: Any) -> TokenDelta:
    output = output_of(name)
    assert failure_of(output) is None
    return delta_of(output, frames_of(name), SamplingParams(**wanted), produced_at, read_row, is_first=is_first)


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_are_encoded_as_recorded(name: str) -> None:
    request = REQUESTS[name]
    message = encode(engine_request(request, f"{request.request_id}-0123abcd", ARRIVAL_TIME))
    assert message.hex() == GOLDEN["requests"][name]["message"]


@pytest.mark.parametrize("name", REQUESTS)
def test_vllm_read_what_was_meant(name: str) -> None:
    request, read = REQUESTS[name], GOLDEN["requests"][name]["decoded"]
    sampling, wanted = read["sampling_params"], request.sampling
    assert read["request_id"] == f"{request.request_id}-0123abcd"
    assert read["external_req_id"] == request.request_id
    assert read["prompt_token_ids"] == request.prompt_token_ids
    assert (read["arrival_time"], read["client_index"]) == (ARRIVAL_TIME, 0)
    for same in ("max_tokens", "min_tokens", "seed", "logprobs", "prompt_logprobs", "ignore_eos"):
        assert sampling[same] == getattr(wanted, same), same
    for same in ("frequency_penalty", "presence_penalty", "repetition_penalty"):
        assert sampling[same] == getattr(wanted, same), same
    assert sampling["stop_token_ids"] == list(wanted.stop_token_ids)
    assert sampling["output_kind"] == "DELTA"
    assert sampling["skip_reading_prefix_cache"] is (wanted.prompt_logprobs is not None)


def test_vllm_read_the_adapter() -> None:
    read = {name: case["decoded"]["lora_request"] for name, case in GOLDEN["requests"].items()}
    assert read.pop("with an adapter") == {
        "lora_name": "é",
        "lora_int_id": 7,
        "lora_path": "/x",
        "base_model_name": "m",
        "load_inplace": False,
        "is_3d_lora_weight": True,
    }
    assert set(read.values()) == {None}


def test_vllm_read_what_a_frontend_has_to_resolve() -> None:
    read = {name: case["decoded"]["sampling_params"] for name, case in GOLDEN["requests"].items()}
    chosen = ("temperature", "top_p", "top_k", "min_p")
    assert [read["greedy"][name] for name in chosen] == [0.0, 1.0, 0, 0.0]
    assert [read["everything"][name] for name in chosen] == [0.7, 0.9, 40, 0.05]
    assert read["nearly greedy"]["temperature"] == 0.01
    assert read["whole vocabulary"]["top_k"] == 0
    stops = ("_eos_token_id", "_all_stop_token_ids")
    assert [read["everything"][name] for name in stops] == [2, [2, 5, 6]]
    assert [read["greedy"][name] for name in stops] == [2, [2]]
    assert [read["defaults"][name] for name in stops] == [None, []]
    # min_tokens holds the end-of-answer tokens off even then
    assert [read["eos ignored"][name] for name in stops] == [None, [2, 5, 6]]


def test_vllm_read_what_constrains_the_tokens() -> None:
    read = GOLDEN["requests"]["constrained"]["decoded"]["sampling_params"]
    assert read["logit_bias"] == {"5": -100.0, "49151": 0.25}
    assert read["allowed_token_ids"] == [5, 49151]
    assert read["_bad_words_token_ids"] == [[1, 2], [3]]
    assert read["repetition_detection"] == {"max_pattern_size": 9, "min_pattern_size": 2, "min_count": 3}
    assert read["extra_args"] == REQUESTS["constrained"].sampling.extra_args
    unconstrained = GOLDEN["requests"]["everything"]["decoded"]["sampling_params"]
    for name in ("logit_bias", "allowed_token_ids", "_bad_words_token_ids", "repetition_detection", "extra_args"):
        assert unconstrained[name] is None, name


def test_vllm_read_how_to_schedule() -> None:
    read = {name: case["decoded"] for name, case in GOLDEN["requests"].items()}
    names = ("priority", "cache_salt", "session_id", "external_req_id")
    assert [read["scheduled"][name] for name in names] == [-7, "🧂", "s", "0_cmpl-10-0"]
    assert [read["everything"][name] for name in names] == [0, None, None, "chatcmpl-4"]


def test_vllm_read_which_form_and_which_library() -> None:
    read = {name: case["decoded"]["sampling_params"]["structured_outputs"] for name, case in GOLDEN["requests"].items()}
    assert read["everything"] is None
    forms = {}
    for name, structured in read.items():
        if structured is not None:
            asked = {kind: value for kind, value in structured.items() if value not in (None, False)}
            assert asked.pop("_backend_was_auto") is True
            forms[name] = asked
    assert forms == {
        "schema": {
            "json": '{"type": "object", "properties": {"\\u00e9": {"maximum": 1000000000000000000000000000000}}}',
            "_backend": "xgrammar",
        },
        "schema for guidance": {
            "json": '{"type": "integer", "multipleOf": 2}',
            "disable_any_whitespace": True,
            "_backend": "guidance",
        },
        "schema for outlines": {
            "json": '{"type": "object", "properties": {}, "patternProperties": {}}',
            "disable_additional_properties": True,
            "_backend": "outlines",
        },
        "object": {"json_object": True, "whitespace_pattern": " ?", "_backend": "xgrammar"},
        "regex": {"regex": "", "_backend": "xgrammar"},
        "choice": {
            "grammar": r'root ::= "a \"b\" \\" | "\u0000\t\n\r\u001f\u007f" | "é 🎉" | ""',
            "_backend": "xgrammar",
        },
        "grammar": {"grammar": 'root ::= "a"', "_backend": "xgrammar"},
        "tag": {"structural_tag": '{"format": {"type": "any_text"}}', "_backend": "xgrammar"},
    }


def test_a_library_that_the_operator_chose_is_told_of_choices_as_they_are() -> None:
    asked = engine_request(REQUESTS["choice"], "internal", ARRIVAL_TIME, "guidance").sampling_params
    assert asked is not None
    structured = asked.structured_outputs
    assert structured is not None
    assert structured.grammar is None
    assert list(structured.choice or ())[-1] == ""
    assert (structured.backend, structured.backend_was_auto) == ("guidance", False)


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_read_back(name: str) -> None:
    request = engine_request(REQUESTS[name], "internal", ARRIVAL_TIME)
    read = decode(encode(request), EngineCoreRequest)
    assert encode(read) == encode(request)
    assert (read.request_id, read.external_req_id) == ("internal", REQUESTS[name].request_id)


def test_a_request_of_fewer_positions_is_read() -> None:
    short = encode(["r", [1], None, {"max_tokens": 3, "of_the_future": {"a": 1}}, None, 1.5, None, None, None])
    read = decode(short, EngineCoreRequest)
    assert read.sampling_params is not None
    assert (read.sampling_params.max_tokens, read.client_index, read.external_req_id) == (3, 0, None)


def test_the_init_message_is_as_recorded() -> None:
    init = EngineInit(addresses=EngineAddresses(inputs=["ipc:///i"], outputs=["ipc:///o"]))
    assert encode(init).hex() == GOLDEN["init"]["message"]
    assert GOLDEN["init"]["decoded"]["addresses"]["outputs"] == ["ipc:///o"]
    assert GOLDEN["init"]["decoded"]["parallel_config"] == {}


@pytest.mark.parametrize("version", ["0.32", "0.33"])
def test_ready_payloads_are_read(version: str) -> None:
    ready = decode(bytes.fromhex(GOLDEN["ready"][version]), EngineReady)
    assert (ready.vllm_version, ready.max_model_len) == (f"{version}.0", 2048)


def test_one_token() -> None:
    assert delta("one token") == TokenDelta([104])


def test_the_first_output_brings_cached_tokens() -> None:
    assert delta("first output").cached_tokens == 8
    assert delta("first output", is_first=False).cached_tokens is None


def test_the_first_output_brings_its_times() -> None:
    first = delta("first output", produced_at=2.5)
    assert (first.start, first.produced_at) == (EngineStart(1.0, 2.0, 2.5), 2.5)
    later = delta("first output", is_first=False, produced_at=2.75)
    assert (later.start, later.produced_at) == (None, 2.75)
    assert delta("one token", produced_at=2.5).start == EngineStart(None, None, 2.5)


def test_logprobs_in_place() -> None:
    expected = LogprobColumns(2, [104, 104], [-0.10000000149011612] * 2, [1])
    assert delta("logprobs in place", logprobs=1).logprobs == expected
    assert delta("logprobs in place").logprobs is None


def test_rows_in_frames_of_their_own_are_cut_to_the_request() -> None:
    assert len(frames_of("logprobs in frames")) == 5
    assert delta("logprobs in frames", logprobs=2).logprobs == LogprobColumns(3, [0, 1, 2], [0.0, -0.25, -0.5], [1])
    whole = delta("logprobs in frames", logprobs=-1).logprobs
    assert whole is not None
    assert (whole.width, list(whole.token_ids)) == (70, list(range(70)))


def test_several_tokens_of_one_step() -> None:
    assert delta("three tokens", logprobs=1).logprobs == LogprobColumns(
        2, [0, 1, 100, 101, 200, 201], [0.0, -0.25, -0.5, -0.75, -1.0, -1.25], [1, 2, 3]
    )
    assert delta("three tokens", logprobs=0).logprobs == LogprobColumns(1, [0, 100, 200], [0.0, -0.5, -1.0], [1, 2, 3])
    # narrower than asked for: there is no more
    widest = delta("three tokens", logprobs=20).logprobs
    assert widest is not None
    assert widest.width == 6


def test_wider_elements() -> None:
    assert delta("64-bit", logprobs=1).logprobs == LogprobColumns(2, [5, 2**40], [-1.5, -2.5], [2])


def test_no_value_fails() -> None:
    columns = delta("extremes", logprobs=2).logprobs
    assert columns is not None
    infinite, undefined, huge = columns.logprobs
    assert infinite == -math.inf
    assert math.isnan(undefined)
    assert huge == pytest.approx(3.4e38)


def test_prompt_rows() -> None:
    in_place = delta("prompt in place", prompt_logprobs=1).prompt_logprobs
    assert in_place == LogprobColumns(2, [0, 1, 100, 101, 200, 201], [0.0, -0.25, -0.5, -0.75, -1.0, -1.25], [1, 2, 3])
    in_frames = delta("prompt in frames", prompt_logprobs=0).prompt_logprobs
    assert in_frames is not None
    assert (in_frames.width, in_frames.rows) == (1, 70)
    assert list(in_frames.token_ids) == [100 * row for row in range(70)]
    empty = delta("prompt of one token", prompt_logprobs=2).prompt_logprobs
    assert empty is not None
    assert empty.rows == 0


def test_how_a_request_ends() -> None:
    assert delta("stopped") == TokenDelta([2], finish_reason=FinishReason.STOP, stop_reason=2)
    assert type(failure_of(output_of("failed"))) is EngineFailure


def test_what_an_engine_leaves_to_others() -> None:
    kv = {"remote_engine_id": "e", "remote_block_ids": [[1, 2]], "remote_host": None}
    assert delta("handed over").transfer == TransferParams(kv, {"x": 1})
    assert delta("one token").transfer is None


def test_drafts() -> None:
    assert delta("drafts").speculation == Speculation(2, [0, 1, 2], 6, [2, 1, 2], [2, 2, 2])
    assert delta("one token").speculation is None


def test_an_engine_before_033_fails_over_a_form_that_does_not_compile() -> None:
    asked = StructuredOutputs(form=Regex("("), param="response_format")
    refused = failure_of(output_of("failed"), asked)
    assert isinstance(refused, RefusedByEngine)
    assert refused.param == "response_format"
    assert failure_of(output_of("one token"), asked) is None
    assert isinstance(failure_of(output_of("0.33, paused"), asked), EngineUnavailable)


def test_what_033_appended() -> None:
    assert delta("0.33") == TokenDelta([104])
    refused = failure_of(output_of("0.33, refused"))
    assert isinstance(refused, RefusedByEngine)
    assert str(refused) == "bad grammar"
    paused = failure_of(output_of("0.33, paused"))
    assert isinstance(paused, EngineUnavailable)
    assert str(paused) == "paused"


@pytest.mark.parametrize("name", ["no outputs", "utility", "wave"])
def test_messages_without_tokens(name: str) -> None:
    assert message_of(name).outputs == []


@pytest.mark.parametrize("name", GOLDEN["outputs"])
def test_outputs_read_back(name: str) -> None:
    message = message_of(name)
    assert encode(decode(encode(message), EngineCoreOutputs[EngineCoreOutput])) == encode(message)
    assert message.engine_index == 1
    assert message.timestamp == 2.5
