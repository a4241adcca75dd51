"""What a request passes on, as it came, to whatever extends the engine."""

from collections.abc import Mapping
from typing import Any

from domain.errors import RequestError

DEEPEST = 64
"""Lists and objects within each other. Whoever reads them may not survive much more."""

SMALLEST_INTEGER, LARGEST_INTEGER = -(2**63), 2**64 - 1
"""What msgpack can write."""


class NotPassedOn(RequestError):
    """What is meant for an extension cannot get there, or needs something of this server that it does not do."""


def extra_args(
    vllm_xargs: Mapping[str, Any] | None,
    kv_transfer_params: Mapping[str, Any] | None,
    ec_transfer_params: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """All three as the engine has them: one map. None where there is nothing to pass on."""
    passed: dict[str, Any] = {}
    if vllm_xargs:
        _check("vllm_xargs", vllm_xargs)
        passed |= vllm_xargs
    if kv_transfer_params:
        # Same as vLLM: the token ids are for a frontend, and never reach the engine.
        kv = {name: value for name, value in kv_transfer_params.items() if name != "prompt_token_ids"}
        _check("kv_transfer_params", kv)
        if kv:
            passed["kv_transfer_params"] = kv
    if ec_transfer_params:
        _check("ec_transfer_params", ec_transfer_params)
        passed["ec_transfer_params"] = ec_transfer_params
    return passed or None


def reused_prompt(kv_transfer_params: Mapping[str, Any] | None) -> list[int] | None:
    """The tokens of a prompt that was rendered for whoever began with it. None where they do not come along."""
    token_ids: Any = (kv_transfer_params or {}).get("prompt_token_ids")
    if token_ids is None:
        return None
    if not isinstance(token_ids, list) or not token_ids or not all(type(one) is int and one >= 0 for one in token_ids):
        message = "kv_transfer_params: prompt_token_ids must be token ids, one at least."
        raise NotPassedOn(message, "kv_transfer_params")
    return token_ids


def _check(param: str, passed: Mapping[str, Any]) -> None:
    """Refuse what the engine cannot be sent, before it is sent."""
    level: list[Any] = [passed]
    for _ in range(DEEPEST + 1):
        level = [value for outer in level for value in _values(outer)]
        if not level:
            return
        numbers = [value for value in level if isinstance(value, int)]
        if any(not SMALLEST_INTEGER <= number <= LARGEST_INTEGER for number in numbers):
            raise NotPassedOn(f"{param} must not hold integers beyond 64 bits.", param)
    raise NotPassedOn(f"{param} must not nest deeper than {DEEPEST} levels.", param)


def _values(outer: Any) -> list[Any]:
    if isinstance(outer, dict):
        return list(outer.values())
    return outer if isinstance(outer, list) else []
