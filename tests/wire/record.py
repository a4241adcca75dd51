"""Writes golden.json: what vLLM's own encoders give, and what its decoders make of our requests.

Run where vLLM 0.32 is installed, from the top of this repository:

    PYTHONPATH=. path/to/python tests/wire/record.py

What 0.33 appended is played by subclasses of the types of 0.32.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec import structs
from vllm.v1.engine import (
    EngineCoreEvent,
    EngineCoreEventType,
    EngineCoreOutput,
    EngineCoreOutputs,
    EngineCoreReadyResponse,
    EngineCoreRequest,
    FinishReason,
    UtilityOutput,
)
from vllm.v1.engine.utils import EngineHandshakeMetadata
from vllm.v1.metrics.stats import PrefillStats, RequestSpecDecodeMetrics, SchedulerStats
from vllm.v1.outputs import LogprobsLists, LogprobsTensors
from vllm.v1.serial_utils import MsgpackDecoder, MsgpackEncoder, UtilityResult

from adapters.outbound.vllm_engine.requests import engine_request
from adapters.outbound.vllm_engine.wire import EngineAddresses, EngineInit, decode, encode
from tests.wire.cases import ARRIVAL_TIME, REQUESTS


@dataclass
class RequestError033:
    code: str
    message: str
    retryable: bool = False


class EngineCoreOutput033(EngineCoreOutput, array_like=True, gc=False):
    error: RequestError033 | None = None


@dataclass
class ReadyResponse033(EngineCoreReadyResponse):
    coord_store_port: int | None = None
    coordinator_input_address: str | None = None
    coordinator_output_address: str | None = None
    of_the_future: dict[str, int] = field(default_factory=lambda: {"a": 1})


def message(*outputs: EngineCoreOutput, **more: Any) -> list[str]:
    encoded = MsgpackEncoder().encode(EngineCoreOutputs(engine_index=1, outputs=list(outputs), timestamp=2.5, **more))
    return [bytes(frame).hex() for frame in encoded]


def lists(ids: list[list[int]], logprobs: list[list[float]], ranks: list[int]) -> LogprobsLists:
    return LogprobsLists(np.array(ids, np.int32), np.array(logprobs, np.float32), np.array(ranks, np.int32))


def tensors(ids: list[list[int]], logprobs: list[list[float]], ranks: list[int]) -> LogprobsTensors:
    return LogprobsTensors(
        torch.tensor(ids, dtype=torch.int32),
        torch.tensor(logprobs, dtype=torch.float32),
        torch.tensor(ranks, dtype=torch.int32),
    )


def wide(rows: int, width: int) -> tuple[list[list[int]], list[list[float]], list[int]]:
    """Row r is the ids 100r, 100r + 1, ... with logprobs -0.5r, -0.5r - 0.25, ... and rank r + 1."""
    return (
        [[100 * row + column for column in range(width)] for row in range(rows)],
        [[-0.5 * row - 0.25 * column for column in range(width)] for row in range(rows)],
        [row + 1 for row in range(rows)],
    )


READY = dict(  # noqa: C408 (a line of it each would hide that nothing here matters)
    max_model_len=2048, num_gpu_blocks=364, block_size=128, dp_stats_address=None, dtype="bfloat16", world_size=1,
    data_parallel_size=1, tensor_parallel_size=1, pipeline_parallel_size=1, decode_context_parallel_size=1,
    data_parallel_rank=0, max_num_seqs=256, max_num_batched_tokens=2048, instance_id="i", supports_lora=False,
    max_loras=0,
)  # fmt: skip

OUTPUTS = {
    "one token": message(EngineCoreOutput("r", [104])),
    "first output": message(
        EngineCoreOutput(
            "r",
            [104],
            events=[
                EngineCoreEvent(EngineCoreEventType.QUEUED, 1.0),
                EngineCoreEvent(EngineCoreEventType.SCHEDULED, 2.0),
            ],
            prefill_stats=PrefillStats(num_prompt_tokens=9, num_computed_tokens=1, num_cached_tokens=8),
        ),
        scheduler_stats=SchedulerStats(num_running_reqs=3, num_waiting_reqs=4),
    ),
    "logprobs in place": message(
        EngineCoreOutput("r", [104], new_logprobs=lists([[104, 104]], [[-0.1, -0.1]], [1])),
    ),
    "logprobs in frames": message(
        EngineCoreOutput("q", [7], new_logprobs=lists(*wide(1, 70))),
        EngineCoreOutput("r", [0], new_logprobs=lists(*wide(1, 70))),
    ),
    "three tokens": message(EngineCoreOutput("r", [0, 100, 200], new_logprobs=lists(*wide(3, 6)))),
    "64-bit": message(
        EngineCoreOutput(
            "r", [5], new_logprobs=LogprobsLists(np.array([[5, 2**40]]), np.array([[-1.5, -2.5]]), np.array([2]))
        )
    ),
    "extremes": message(
        EngineCoreOutput("r", [1], new_logprobs=lists([[1, 2, 3]], [[float("-inf"), float("nan"), 3.4e38]], [9]))
    ),
    "prompt in place": message(
        EngineCoreOutput("r", [1], new_prompt_logprobs_tensors=tensors(*wide(3, 2))),
    ),
    "prompt in frames": message(
        EngineCoreOutput("r", [1], new_prompt_logprobs_tensors=tensors(*wide(70, 3))),
    ),
    "prompt of one token": message(
        EngineCoreOutput("r", [1], new_prompt_logprobs_tensors=LogprobsTensors.empty_cpu(0, 3)),
    ),
    "stopped": message(
        EngineCoreOutput("r", [2], finish_reason=FinishReason.STOP, stop_reason=2), finished_requests={"r"}
    ),
    "handed over": message(
        EngineCoreOutput(
            "r",
            [104],
            finish_reason=FinishReason.LENGTH,
            kv_transfer_params={"remote_engine_id": "e", "remote_block_ids": [[1, 2]], "remote_host": None},
            ec_transfer_params={"x": 1},
        )
    ),
    "drafts": message(
        EngineCoreOutput(
            "r",
            [104],
            finish_reason=FinishReason.LENGTH,
            spec_decode_metrics=RequestSpecDecodeMetrics(2, [0, 1, 2], 6, [2, 1, 2], [2, 2, 2]),
        )
    ),
    "failed": message(EngineCoreOutput("r", [], finish_reason=FinishReason.ERROR)),
    "no outputs": message(scheduler_stats=SchedulerStats()),
    "utility": message(utility_output=UtilityOutput(5, None, UtilityResult(True))),
    "wave": message(wave_complete=3, start_wave=4),
    "0.33": message(EngineCoreOutput033("r", [104])),
    "0.33, refused": message(
        EngineCoreOutput033(
            "r", [], finish_reason=FinishReason.ERROR, error=RequestError033("validation_error", "bad grammar")
        )
    ),
    "0.33, paused": message(
        EngineCoreOutput033(
            "r", [], finish_reason=FinishReason.ABORT, error=RequestError033("engine_paused", "paused", True)
        )
    ),
}


def decoded(encoded: bytes) -> dict[str, Any]:
    request = MsgpackDecoder(EngineCoreRequest).decode(encoded)
    sampling = request.sampling_params
    fields = {name: getattr(request, name) for name in request.__struct_fields__ if name != "sampling_params"}
    if request.lora_request is not None:
        fields["lora_request"] = structs.asdict(request.lora_request)
    chosen = {name: getattr(sampling, name) for name in sampling.__struct_fields__}
    chosen["_all_stop_token_ids"] = sorted(sampling.all_stop_token_ids)
    chosen["output_kind"] = sampling.output_kind.name
    if sampling.repetition_detection is not None:
        chosen["repetition_detection"] = asdict(sampling.repetition_detection)
    if sampling.structured_outputs is not None:
        chosen["structured_outputs"] = asdict(sampling.structured_outputs)
    return {**fields, "sampling_params": chosen}


def golden() -> dict[str, Any]:
    requests = {}
    for name, request in REQUESTS.items():
        encoded = encode(engine_request(request, f"{request.request_id}-0123abcd", ARRIVAL_TIME))
        requests[name] = {"message": encoded.hex(), "decoded": decoded(encoded)}
    init = encode(EngineInit(addresses=EngineAddresses(inputs=["ipc:///i"], outputs=["ipc:///o"])))
    metadata = decode(init, EngineHandshakeMetadata)
    ready = EngineCoreReadyResponse(vllm_version="0.32.0", **READY)
    ready_033 = ReadyResponse033(vllm_version="0.33.0", **READY)
    return {
        "requests": requests,
        "outputs": OUTPUTS,
        "init": {"message": init.hex(), "decoded": asdict(metadata)},
        "ready": {
            "0.32": encode(ready).hex(),
            "0.33": encode(ready_033).hex(),
        },
    }


if __name__ == "__main__":
    Path(__file__).with_name("golden.json").write_text(json.dumps(golden(), indent=1) + "\n")
