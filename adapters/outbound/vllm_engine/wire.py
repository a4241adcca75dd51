"""What frontend and engine core say to each other, as msgpack: vLLM 0.32, and what 0.33 appended to it.

Both sides of the protocol are here, so that an engine can be played as well as spoken to. Structs are arrays by
position or maps by name exactly as vLLM has them; positions and keys beyond those known here are skipped when read.
Numbers of many positions travel as tensors: in place when small, else in a frame of their own behind the message.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field
from msgspec.msgpack import Ext

ADD: Final = b"\x00"
ABORT: Final = b"\x01"
START_DP_WAVE: Final = b"\x02"
UTILITY: Final = b"\x03"
"""What a message to an engine is: the frame between the engine's identity and the msgpack."""

ENGINE_CORE_DEAD: Final = b"ENGINE_CORE_DEAD"
"""The whole of the last message of an engine that fails."""

RAW_VIEW: Final = 3
"""Ext code of tensor bytes in place."""

INLINE_BELOW: Final = 256
"""A tensor of fewer bytes travels in place."""

NULL: Final = b"\xc0"
"""msgpack's."""

HELLO: Final = "HELLO"
READY: Final = "READY"


Message = TypeVar("Message")


def encode(message: Any) -> bytes:
    """The msgpack of one message."""
    return msgspec.msgpack.encode(message)


def decode(payload: bytes | Raw, kind: type[Message]) -> Message:
    """A message of that kind. Raises msgspec.DecodeError, or its subclass msgspec.ValidationError."""
    return msgspec.msgpack.decode(payload, type=kind)


def identity_of(engine_index: int) -> bytes:
    """The ZMQ identity under which an engine connects."""
    return engine_index.to_bytes(2, "little")


class FinishCode(IntEnum):
    """Why the engine ended a request."""

    STOP = 0
    LENGTH = 1
    ABORT = 2
    ERROR = 3
    REPETITION = 4


class OutputKind(IntEnum):
    """Which outputs a frontend wants of a request."""

    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


# Handshake, on a socket of its own: the engine says hello, is told where to connect to, and says when it is ready.


class HandshakeStatus(Struct):
    """What an engine says of itself: HELLO before it loads its model, READY after."""

    status: str
    local: bool = True
    """On the frontend's machine."""
    headless: bool = True


class EngineAddresses(Struct, kw_only=True):
    """ZMQ endpoints that an engine connects to, one of each per frontend process."""

    inputs: Sequence[str]
    outputs: Sequence[str]
    coordinator_input: str | None = None
    coordinator_output: str | None = None
    frontend_stats_publish_address: str | None = None


class EngineInit(Struct, kw_only=True):
    """The answer to HELLO."""

    addresses: EngineAddresses
    parallel_config: Mapping[str, Any] = {}


class EngineIdentification(Struct, kw_only=True):
    """What this frontend reads of an engine's first message on the input socket."""

    max_model_len: int
    vllm_version: str


class EngineReady(EngineIdentification, kw_only=True):
    """All that an engine says there."""

    num_gpu_blocks: int = 0
    block_size: int = 16
    dp_stats_address: str | None = None
    dtype: str = "bfloat16"
    world_size: int = 1
    data_parallel_size: int = 1
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    decode_context_parallel_size: int = 1
    data_parallel_rank: int = 0
    max_num_seqs: int = 0
    max_num_batched_tokens: int = 0
    instance_id: str = ""
    supports_lora: bool = False
    max_loras: int = 0


# Frontend to engine.


class EngineRepetitionDetection(Struct, kw_only=True):
    """When an answer counts as repeating itself."""

    max_pattern_size: int
    min_pattern_size: int
    min_count: int


class EngineStructuredOutputs(Struct, omit_defaults=True, kw_only=True):
    """What form an output has. Of the first six one is given."""

    json: str | Mapping[str, Any] | None = None
    regex: str | None = None
    choice: Sequence[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None
    backend: str | None = field(default=None, name="_backend")
    """The library that compiles it. An engine fails over one without."""
    backend_was_auto: bool = field(default=False, name="_backend_was_auto")


class EngineSampling(Struct, omit_defaults=True, kw_only=True):
    """Sampling parameters. A key left out has vLLM's default, which is the default here."""

    max_tokens: int | None = 16
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    ignore_eos: bool = False
    stop_token_ids: Sequence[int] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: Sequence[int] | None = None
    logit_bias: Mapping[int, float] | None = None
    allowed_token_ids: Sequence[int] | None = None
    repetition_detection: EngineRepetitionDetection | None = None
    extra_args: Mapping[str, Any] | None = None
    routed_experts_prompt_start: int = 0
    structured_outputs: EngineStructuredOutputs | None = None
    bad_words_token_ids: Sequence[Sequence[int]] | None = field(default=None, name="_bad_words_token_ids")
    output_kind: int = OutputKind.CUMULATIVE
    eos_token_id: int | None = field(default=None, name="_eos_token_id")
    all_stop_token_ids: Sequence[int] = field(default=(), name="_all_stop_token_ids")


class EngineLora(Struct, array_like=True):
    """A LoRA adapter."""

    lora_name: str
    lora_int_id: int
    lora_path: str
    base_model_name: str | None = None
    load_inplace: bool = False
    """Load it even if one of that id is there. An engine does so each time it comes across it."""
    is_3d_lora_weight: bool = False


class EngineCoreRequest(Struct, array_like=True, gc=False):
    """The body of an ADD. Unlike the defaults of a map, every position is written."""

    request_id: str
    prompt_token_ids: Sequence[int] | None
    mm_features: Any
    sampling_params: EngineSampling | None
    pooling_params: Any
    arrival_time: float
    """Wall clock, in seconds."""
    lora_request: EngineLora | None = None
    cache_salt: str | None = None
    data_parallel_rank: int | None = None
    prompt_embeds: Any = None
    prompt_is_token_ids: Any = None
    client_index: int = 0
    """Which of `EngineAddresses.outputs` is answered."""
    current_wave: int = 0
    priority: int = 0
    trace_headers: Any = None
    resumable: bool = False
    external_req_id: str | None = None
    reasoning_ended: bool | None = None
    reasoning_parser_kwargs: Any = None
    abort_immediately: bool = False
    session_id: str | None = None
    kv_hints: Any = None


class UtilityRequest(Struct, array_like=True):
    """The body of a UTILITY: call one of the engine's own methods."""

    client_index: int
    call_id: int
    method: str
    args: Sequence[Any] = ()


# Engine to frontend.


class Tensor(Struct, array_like=True, gc=False):
    """Numbers in row-major order."""

    dtype: str
    """NumPy's, such as `<i4`, or torch's, such as `int32`."""
    shape: Sequence[int]
    buffer: Ext | int
    """The bytes in place, or the index of the frame that holds them; the message itself is frame 0."""


class LogprobRows(Struct, array_like=True, gc=False):
    """Scores of sampled tokens: the sampled one first in each row, then as many as the widest request of the batch
    asked for."""

    token_ids: Tensor
    """Shape (rows, width)."""
    logprobs: Tensor
    """Shape (rows, width)."""
    ranks: Tensor
    """Shape (rows,): 1-based vocabulary ranks of the sampled tokens."""
    cu_num_generated_tokens: Any = None


class PromptLogprobRows(Struct, array_like=True, gc=False):
    """Scores of the prompt tokens from the second on, laid out alike; torch tensors."""

    token_ids: Tensor
    logprobs: Tensor
    ranks: Tensor
    cu_num_generated_tokens: Any = None
    cu_num_generated_tokens_tensor: Any = None


class PrefillStats(Struct):
    """How much of a prompt was computed."""

    num_prompt_tokens: int = 0
    num_computed_tokens: int = 0
    num_cached_tokens: int = 0
    num_local_cached_tokens: int = 0
    num_external_cached_tokens: int = 0
    num_cache_creation_tokens: int = 0


class SpecDecodeMetrics(Struct):
    """The drafts of one request."""

    num_spec_tokens: int
    histogram: list[int]
    """How many steps accepted 0, 1, ... of them."""
    num_draft_tokens: int = 0
    per_step_accepted: list[int] = field(default_factory=list)
    per_step_drafted: list[int] = field(default_factory=list)


class OutputError(Struct):
    """Why a request failed, since 0.33."""

    code: str = ""
    message: str | None = None
    param: str | None = None
    retryable: bool | None = None


QUEUED: Final = 1
SCHEDULED: Final = 2


class EngineEvent(Struct, gc=False):
    """What happened to a request before its output."""

    type: int
    """QUEUED, SCHEDULED, or what is not used here."""
    timestamp: float
    """Monotonic, in seconds, by the engine's clock."""


class EngineCoreOutput032(Struct, array_like=True, gc=False):
    """What one engine step produced for one request, as 0.32 writes it."""

    request_id: str
    new_token_ids: Sequence[int]
    new_logprobs: LogprobRows | None = None
    new_prompt_logprobs_tensors: PromptLogprobRows | None = None
    pooling_output: Any = None
    finish_reason: int | None = None
    """A FinishCode, or one that is not known yet."""
    stop_reason: int | str | None = None
    events: Sequence[EngineEvent] | None = None
    kv_transfer_params: Any = None
    ec_transfer_params: Any = None
    trace_headers: Any = None
    prefill_stats: PrefillStats | None = None
    """With the first output of a prefill only."""
    routed_experts: Any = None
    num_nans_in_logits: int = 0
    mm_cache_miss_hashes: Any = None
    new_sampling_mask: Any = None
    spec_decode_metrics: SpecDecodeMetrics | None = None
    """With the last output only, if the engine was told to count."""
    prompt_token_id_logprobs: Any = None


class EngineCoreOutput(EngineCoreOutput032, array_like=True, gc=False):
    """The same as 0.33 writes it; what 0.32 wrote reads as one without error."""

    error: OutputError | None = None


class UnreadOutput(EngineCoreOutput, array_like=True, gc=False):
    """The same as this frontend takes it in: most rows need no decoding."""

    new_logprobs: Raw = Raw(NULL)  # type: ignore[assignment]


Output = TypeVar("Output", bound=EngineCoreOutput032)


class SchedulerStats(Struct):
    """How busy an engine is."""

    num_running_reqs: int = 0
    num_waiting_reqs: int = 0


class UtilityOutput(Struct, array_like=True):
    """What a utility call came to."""

    call_id: int
    failure_message: str | None = None
    result: Any = None
    """A pair of None and the value."""


class EngineCoreOutputs(Struct, Generic[Output], array_like=True, gc=False):
    """One message of an engine: its step's outputs for all requests of one frontend."""

    engine_index: int = 0
    outputs: Sequence[Output] = ()
    scheduler_stats: SchedulerStats | None = None
    timestamp: float = 0.0
    """Monotonic, in seconds, by the engine's clock."""
    utility_output: UtilityOutput | None = None
    finished_requests: Sequence[str] | None = None
    wave_complete: int | None = None
    start_wave: int | None = None
    weight_version: str | None = None
