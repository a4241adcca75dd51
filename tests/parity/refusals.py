"""What is refused otherwise than by vLLM's Python frontend, where that is meant: named as the rows in
docs/compatibility.md."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.parity.answers import Answer
from tests.parity.fields import TOO_DEEP
from tests.parity.pair import Pair
from tests.real_engine.parity import Difference

REFUSED = ("tools", "tool_choice", "prompt_embeds", "use_beam_search", "watermarking", "suffix")
"""Fields that ask for what is not served."""

OF_THE_OTHER = ("top_logprobs", "max_completion_tokens", "messages", "prompt")
"""Fields that only the other endpoint has."""

NOT_SERVED = "not served"
"""No row: the list in the README."""


STATUS = (("status",), ("error",), ("headers", "content-type"))
"""Where one answers and the other refuses."""


def type_is_one(difference: Difference, pair: Pair) -> bool:
    return difference.path == ("error", "type") and (difference.ours, difference.theirs) == (
        "BadRequestError",
        "Bad Request",
    )


def param_is_the_field(difference: Difference, pair: Pair) -> bool:
    """Ours is the bare name of a field that the case is about. Theirs has none, or has it as a path."""
    if difference.path != ("error", "param") or difference.ours not in pair.case.fields:
        return False
    theirs = difference.theirs
    return theirs is None or theirs.removeprefix("body.").split(".")[0] == difference.ours


def param_of_a_long_prompt(difference: Difference, pair: Pair) -> bool:
    field = "messages" if pair.case.is_chat else "prompt"
    return difference[:2] == (("error", "param"), field) and (
        difference.theirs in ("input_tokens", "input_text", "max_tokens")
    )


def param_of_max_completion_tokens(difference: Difference, pair: Pair) -> bool:
    return difference == (("error", "param"), "max_completion_tokens", "max_tokens") and (
        pair.asked["max_completion_tokens"] < 1
    )


def param_of_alternatives(difference: Difference, pair: Pair) -> bool:
    """More than the server allows."""
    return pair.case.is_chat and difference == (("error", "param"), "top_logprobs", "logprobs")


def param_of_large_integers(difference: Difference, pair: Pair) -> bool:
    return (
        difference.path == ("error", "param")
        and difference.ours in pair.case.fields
        and (difference.theirs == "extra_args")
    )


def refusal_is_a_status(difference: Difference, pair: Pair) -> bool:
    """Of a stream, before it begins; theirs is a frame."""
    if not (pair.case.streams and pair.ours.status == 400 and pair.theirs.status == 200 and pair.theirs.error):
        return False
    return pair.theirs.error["code"] == 400 and difference.path in (("status",), ("headers", "content-type"))


def failure_is_a_refusal(difference: Difference, pair: Pair) -> bool:
    """400 by the field's name, where theirs is a 500."""
    is_named = pair.ours.error is not None and pair.ours.error["param"] in pair.case.fields
    failed = pair.theirs.status == 500 or (pair.theirs.error or {}).get("code") == 500
    return pair.ours.status == 400 and is_named and failed


def is_not_served(difference: Difference, pair: Pair) -> bool:
    field = pair.case.field
    said = f"{field} is not supported by this server yet."
    return (
        field in REFUSED
        and pair.ours.status == 400
        and pair.ours.error is not None
        and ((pair.ours.error["param"], pair.ours.error["message"]) == (field, said))
    )


def is_of_the_other_endpoint(difference: Difference, pair: Pair) -> bool:
    """Theirs is as if it had not been sent."""
    field = pair.case.field
    if field not in OF_THE_OTHER or pair.theirs.status != 200 or pair.ours.status != 400:
        return False
    return names_the_field(pair.ours, pair) and difference.path in STATUS


def refuses(is_so: Callable[[Mapping[str, Any]], bool]) -> Callable[[Difference, Pair], bool]:
    """400 by the field's name for requests that are so, which vLLM serves."""

    def is_meant(difference: Difference, pair: Pair) -> bool:
        statuses = (pair.ours.status, pair.theirs.status, pair.theirs.error)
        return (
            is_so(pair.asked)
            and statuses == (400, 200, None)
            and (names_the_field(pair.ours, pair) and difference.path in STATUS)
        )

    return is_meant


def scores_nothing(asked: Mapping[str, Any]) -> bool:
    return asked.get("logprob_token_ids") == []


def is_deep(asked: Mapping[str, Any]) -> bool:
    return TOO_DEEP in (asked.get("kv_transfer_params"), asked.get("ec_transfer_params"))


def lacks_its_schema(asked: Mapping[str, Any]) -> bool:
    match asked:
        case {"response_format": {"json_schema": {} as named}, "structured_outputs": dict()}:
            return "schema" not in named
    return False


def template_failures_have_an_id(difference: Difference, pair: Pair) -> bool:
    """As any answer, where `--enable-request-id-headers` says so."""
    return (
        "chat_template" in pair.case.fields
        and pair.ours.status == pair.theirs.status == 400
        and (difference == (("headers", "(keys)"), ["content-type", "x-request-id"], ["content-type"]))
    )


def names_the_field(answer: Answer, pair: Pair) -> bool:
    return answer.error is not None and answer.error["param"] in pair.case.fields


REFUSALS: Mapping[str, Callable[[Difference, Pair], bool]] = {
    "type of a 400": type_is_one,
    "`param` of a 400": param_is_the_field,
    "too long a prompt": param_of_a_long_prompt,
    "`max_completion_tokens` below 1": param_of_max_completion_tokens,
    "more `top_logprobs` than the server allows": param_of_alternatives,
    "refusals by the engine, streamed": refusal_is_a_status,
    "a request that vLLM fails over, such as `structured_outputs: 5`": failure_is_a_refusal,
    NOT_SERVED: is_not_served,
    "fields of the other endpoint, such as `top_logprobs` of completions": is_of_the_other_endpoint,
    "`logprob_token_ids: []`": refuses(scores_nothing),
    "`kv_transfer_params`, `ec_transfer_params` deeper than 64 levels": refuses(is_deep),
    "`json_schema` without `schema`, beside other `structured_outputs`": refuses(lacks_its_schema),
    "integers beyond 64 bits for extensions": param_of_large_integers,
    "a template that fails, with `--enable-request-id-headers`": template_failures_have_an_id,
}
