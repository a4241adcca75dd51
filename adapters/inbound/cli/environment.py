"""What the environment says: stand-ins for flags, and wishes that are not built and so fail the start."""

from collections.abc import Iterable, Mapping
from typing import Any

from adapters.inbound.cli.flags import Flag
from adapters.inbound.cli.usage import UsageError

_OFF = ("", "0", "false")
_NOT_BUILT: dict[str, tuple[str, ...]] = {
    "VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT": ("", "30", "30.0"),
    "VLLM_DEBUG_LOG_API_SERVER_RESPONSE": _OFF,
    "VLLM_ENABLE_COHERE_API": _OFF,
    "VLLM_ENABLE_RESPONSES_API_STORE": _OFF,
    "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": _OFF,
    "VLLM_LORA_RESOLVER_CACHE_DIR": ("",),
    "VLLM_LORA_RESOLVER_HF_REPO_LIST": ("",),
    "VLLM_MAX_BAD_WORDS_TOTAL_TOKENS": ("", "1024"),
    "VLLM_MAX_COMPLETION_PROMPTS": ("", "1024"),
    "VLLM_MAX_NUM_BAD_WORDS": ("", "128"),
    "VLLM_MAX_N_SEQUENCES": ("", "16384"),
    "VLLM_MAX_STOP_STRINGS": ("", "4"),
    "VLLM_SERVER_DEV_MODE": _OFF,
    "VLLM_SKIP_MODEL_NAME_VALIDATION": _OFF,
    "VLLM_USE_MODELSCOPE": _OFF,
}
"""Variables of vLLM's that change what a server lets in or answers, with the values that ask for nothing."""


def allows_lora_updating(environ: Mapping[str, str]) -> bool:
    """Same as vLLM: what is not a clear yes is a no."""
    return environ.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").strip().lower() in ("1", "true")


def refuse_unbuilt(environ: Mapping[str, str]) -> None:
    """Raises UsageError for a variable that asks for what is not built. Its value may be a secret and is not shown."""
    for name, asking_for_nothing in _NOT_BUILT.items():
        if environ.get(name, "").lower() not in asking_for_nothing:
            raise UsageError(f"{name} is set in the environment, and is not supported by Northbound yet")


def stand_ins(flags: Iterable[Flag], environ: Mapping[str, str]) -> dict[str, Any]:
    """What the environment gives for the flags that have a variable, by key. An empty variable gives nothing."""
    given: dict[str, Any] = {}
    for flag in flags:
        text = environ.get(flag.env, "") if flag.env else ""
        if not text:
            continue
        if not is_utf8(text):
            raise UsageError(f"{flag.env}: not UTF-8")
        try:
            words = [text] if flag.env_is_one or not flag.many else text.split(",")
            values = [flag.kind.read_text(word) for word in words]
            given[flag.key] = values if flag.many else values[0]
        except ValueError as error:
            raise UsageError(f"{flag.env}: {error}") from None
    return given


def is_utf8(word: str) -> bool:
    """Whether a word of the command line or the environment was; Python escapes the bytes of one that was not."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
