"""The differences from vLLM's Python frontend that are meant, each named as its row in docs/compatibility.md.

It accepts a difference only where both sides are exactly what the row says they are.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.parity.engine import MAX_MODEL_LEN
from tests.parity.tokens.cases import ABORT, CHAT, COMPLETIONS, DETOKENIZE, GENERATE, NO_TOKEN, TOKENIZE, Case, Json
from tests.parity.tokens.comparison import ABSENT, Answer, answer_differences, bodies, error_of
from tests.real_engine.parity import Difference, at
from tests.real_engine.vocabulary import Vocabulary


class Pair(NamedTuple):
    case: Case
    ours: Answer
    theirs: Answer
    probe: Answer | None
    """Our answer to what the case is like, if there is such a thing: see Case.like."""
    vocabulary: Vocabulary

    @property
    def body(self) -> Json:
        return self.case.body if isinstance(self.case.body, dict) else {}

    @property
    def sampling(self) -> Json:
        return self.body.get("sampling_params") or {}

    @property
    def refused(self) -> str | None:
        """The field that ours names, where theirs is an answer."""
        error = error_of(self.ours)
        if error is None or (self.ours["status"], self.theirs["status"], error_of(self.theirs)) != (400, 200, None):
            return None
        field: str | None = error["param"]
        return field if (error["type"], error["code"]) == ("BadRequestError", 400) else None


Meant = Callable[[Difference, Pair], bool]
VLLMS_OWN = {"output_kind", "skip_clone", "skip_reading_prefix_cache"}
FORMS_OWN = {"disable_any_whitespace": False, "disable_additional_properties": False, "_backend_was_auto": False}
REQUIRED = {
    TOKENIZE: "prompt",
    DETOKENIZE: "tokens",
    f"{CHAT}/derender": "generate_response",
    ABORT: "request_ids",
}


def type_is_one(difference: Difference, pair: Pair) -> bool:
    return difference == (("error", "type"), "BadRequestError", "Bad Request")


def param_is_the_field(difference: Difference, pair: Pair) -> bool:
    """Ours is the bare name of a field that the case has, or lacks. Theirs has none, or has it as a path."""
    fields = {*pair.body, *pair.sampling}
    lacking = {"token_ids", "sampling_params"} if pair.case.path == GENERATE else {REQUIRED.get(pair.case.path)}
    if difference.path != ("error", "param") or difference.ours not in fields | lacking - set(pair.body):
        return False
    return difference.theirs is None or difference.ours in difference.theirs.removeprefix("body.").split(".")


def param_is_of_the_kind_that_was_sent(difference: Difference, pair: Pair) -> bool:
    kinds = {
        TOKENIZE: ("messages", "body.prompt"),
        f"{CHAT}/derender": ("generate_chunk", "body.DerenderChatRequest.stream"),
    }
    asks = "messages" if pair.case.path == TOKENIZE else "stream"
    return asks in pair.body and difference == (("error", "param"), *kinds.get(pair.case.path, ()))


def param_is_inside(difference: Difference, pair: Pair) -> bool:
    """Of sampling parameters."""
    names = {"sampling_params", *pair.sampling}
    return (
        pair.case.path == GENERATE
        and difference.path == ("error", "param")
        and difference.theirs is not None
        and {difference.ours, difference.theirs.removeprefix("body.")} <= names
        and "sampling_params" in (difference.ours, difference.theirs.removeprefix("body."))
    )


def refusal_is_a_status(difference: Difference, pair: Pair) -> bool:
    error = error_of(pair.theirs) or {}
    return difference == (("status",), 400, 200) and bool(pair.body.get("stream")) and error.get("code") == 400


def type_is_strict(difference: Difference, pair: Pair) -> bool:
    """The value of the right type is answered as theirs is to this one."""
    if pair.case.meant is None or pair.probe is None or pair.refused not in pair.body:
        return False
    return not list(answer_differences(pair.probe, pair.theirs))


def null_is_absent(difference: Difference, pair: Pair) -> bool:
    refused = pair.ours["status"] == 200 and pair.theirs["status"] == 400
    return refused and has_null(pair.body) and pair.probe is not None and is_alike(pair.ours, pair.probe)


def has_null(told: Any) -> bool:
    return told is None or (isinstance(told, dict) and any(map(has_null, told.values())))


def is_alike(one: Answer, other: Answer) -> bool:
    return not list(answer_differences(one, other))


def refuses(path: str, field: str, is_so: Callable[[Json], bool]) -> Meant:
    """400 by the field's name where the request is so; theirs answers."""
    return lambda _, pair: pair.case.path == path and pair.refused == field and is_so(pair.body)


def fails(path: str, field: str, is_so: Callable[[Json], bool]) -> Meant:
    """400 by the field's name where the request is so; theirs fails over it."""

    def is_meant(difference: Difference, pair: Pair) -> bool:
        ours, theirs = error_of(pair.ours) or {}, error_of(pair.theirs) or {}
        statuses = pair.ours["status"], pair.theirs["status"], ours.get("code"), theirs.get("code")
        return (
            pair.case.path == path
            and statuses == (400, 500, 400, 500)
            and is_so(pair.case.body)
            and (ours["type"], ours["param"]) == ("BadRequestError", field or None)
            and (theirs["type"], theirs["param"]) == ("InternalServerError", None)
        )

    return is_meant


def either(*meant: Meant) -> Meant:
    return lambda difference, pair: any(each(difference, pair) for each in meant)


def ignored_fields_count(difference: Difference, pair: Pair) -> bool:
    """Theirs is what ours is without them."""
    fields = {"documents", "reasoning_effort"} & set(pair.body)
    return (
        pair.case.path == TOKENIZE
        and bool(fields)
        and difference.path[:1] == (0,)
        and difference.path[1] in ("count", "tokens")
        and pair.probe is not None
        and is_alike(pair.probe, pair.theirs)
    )


def broken_character_is_shown(difference: Difference, pair: Pair) -> bool:
    """Bytes of a token that are no text: U+FFFD for them. Theirs has nothing."""
    match difference.path:
        case (*_, str(token_id), "decoded_token"):
            own = pair.vocabulary.bytes_of(int(token_id))
        case (*outer, "token"):
            own = bytes(at(bodies(pair.ours), (*outer, "bytes")))
        case _:
            return False
    shown = own.decode(errors="replace")
    return "\ufffd" in shown and (difference.ours, difference.theirs) == (shown, shown.replace("\ufffd", ""))


def bytes_are_the_tokens_own(difference: Difference, pair: Pair) -> bool:
    if difference.path[-1:] != ("bytes",) or difference.theirs != []:
        return False
    return "\ufffd" in bytes(difference.ours).decode(errors="replace")


def text_is_shown_at_once(difference: Difference, pair: Pair) -> bool:
    """What cannot begin a stop string. Theirs holds back as many characters as the longest has, less one."""
    stop = pair.sampling.get("stop")
    match difference.path:
        case (int(place), "choices", 0, "text") if stop and pair.body.get("stream"):
            longest = max(map(len, [stop] if isinstance(stop, str) else stop))
            ours, theirs = ([body["choices"][0]["text"] for body in bodies(each)] for each in (pair.ours, pair.theirs))
            shown, held = "".join(ours[: place + 1]), "".join(theirs[: place + 1])
            return "".join(ours) == "".join(theirs) and shown.startswith(held) and len(shown) - len(held) < longest
    return False


def prompt_is_scored_in_streams(difference: Difference, pair: Pair) -> bool:
    """As in one piece, with the first chunk of a choice."""
    if pair.case.path != GENERATE or difference.path[1:] != ("prompt_logprobs",) or pair.probe is None:
        return False
    asked = bool(pair.body["stream"]) and pair.sampling.get("prompt_logprobs") is not None
    return asked and difference[1:] == (bodies(pair.probe)[0]["prompt_logprobs"], ABSENT)


def candidates_are_all(difference: Difference, pair: Pair) -> bool:
    """Theirs are cut to as many as were asked for, the token itself included."""
    if pair.case.path != GENERATE or difference.path[-1:] != ("top_logprobs",) or "logprob_token_ids" in pair.sampling:
        return False
    width = pair.sampling["logprobs"]
    return bool(len(difference.ours) == width + 1 and difference.theirs == difference.ours[:width])


def chosen_ids_are_all(difference: Difference, pair: Pair) -> bool:
    chosen = (pair.sampling or pair.body).get("logprob_token_ids")
    match difference.path:
        case (*outer, "top_logprobs") if chosen and pair.case.path == GENERATE:
            ids = [candidate["token_id"] for candidate in difference.ours]
            sampled = at(bodies(pair.ours), tuple(outer))["token_id"]
            return ids == [sampled, *chosen] and difference.theirs == difference.ours[: pair.sampling["logprobs"]]
        case (0, "sampling_params", "logprobs") if chosen and pair.case.path == f"{CHAT}/render":
            return difference[1:] == (len(chosen), ABSENT)
    unscored = "logprobs" not in pair.sampling
    return bool(chosen) and pair.case.path == GENERATE and unscored and pair.refused == "logprob_token_ids"


def tokens_are_told(difference: Difference, pair: Pair) -> bool:
    told = pair.case.path == f"{COMPLETIONS}/render" and "max_tokens" not in pair.body
    return told and difference.path[2:] == ("sampling_params", "max_tokens") and difference[1:] == (16, ABSENT)


def greedy_sampling_is_as_asked(difference: Difference, pair: Pair) -> bool:
    match difference.path:
        case (*_, "sampling_params", "top_p" | "top_k" | "min_p" as name) if pair.body.get("temperature") == 0:
            return difference[1:] == (pair.body.get(name, {"top_p": 1.0, "top_k": 0, "min_p": 0.0}[name]), ABSENT)
    return False


def vllms_flags_are_left_out(difference: Difference, pair: Pair) -> bool:
    return (
        difference.path[-2:-1] == ("sampling_params",)
        and difference.path[-1] in VLLMS_OWN
        and (difference.ours == ABSENT)
    )


def form_is_what_was_set(difference: Difference, pair: Pair) -> bool:
    match difference.path:
        case (*_, "sampling_params", "structured_outputs", str(name)):
            return difference[1:] == (ABSENT, FORMS_OWN.get(name))
    return False


def chat_request_counts(difference: Difference, pair: Pair) -> bool:
    """Theirs reads it for special tokens and ids."""
    asked = pair.body.get("chat_request", {})
    match difference.path:
        case (0, "prompt_token_ids") if asked.get("return_token_ids"):
            return bool(difference[1:] == (pair.body["prompt_token_ids"], None))
        case (*_, "top_logprobs") if "top_logprobs" in asked:
            return bool(difference.ours == difference.theirs[: asked["top_logprobs"]])
        case (0, *inner, "token") if asked.get("return_tokens_as_token_ids"):
            generated = at(pair.body["generate_response"], tuple(inner))
            text = pair.vocabulary.bytes_of(generated["token_id"]).decode()
            return difference[1:] == (f"token_id:{generated['token_id']}", text)
    return False


def completion_request_counts(difference: Difference, pair: Pair) -> bool:
    asked = pair.body.get("completion_request", {})
    if not asked.get("echo"):
        return False
    prompt = b"".join(map(pair.vocabulary.bytes_of, asked["prompt"])).decode()
    match difference.path:
        case (0, "choices", 0, "text"):
            return bool(difference.ours == prompt + difference.theirs)
        case (0, "usage", "prompt_tokens" | "total_tokens"):
            return bool(difference.ours == len(asked["prompt"]) + difference.theirs)
    return False


def prompt_is_counted(difference: Difference, pair: Pair) -> bool:
    match difference.path:
        case (0, "usage", "prompt_tokens" | "total_tokens") if "prompt_tokens" not in pair.body:
            return bool(difference.ours == len(pair.body.get("prompt_token_ids", [])) + difference.theirs)
    return False


def fingerprint_is_the_servers(difference: Difference, pair: Pair) -> bool:
    told = pair.case.path.endswith("/derender") and difference.path[-1:] == ("system_fingerprint",)
    return told and difference.theirs is None and str(difference.ours).startswith("vllm-0.32.0-")


def state_is_the_detokenizers(difference: Difference, pair: Pair) -> bool:
    if difference.path != (0, "stream_state"):
        return False
    ours = {"role_sent", "unread", "context", "text_offset", "held", "stopped_by", "seen"}
    return set(difference.ours) == ours and {"prev_tokens", "prefix_offset", "read_offset"} <= set(difference.theirs)


def choices_of(body: Json) -> list[Json]:
    generated: Json = body.get("generate_response", {})
    choices: list[Json] = generated.get("choices", [])
    return choices


def cannot_be(body: Json) -> bool:
    """Nothing generated, or what no engine generates."""
    return not choices_of(body) or any(
        NO_TOKEN in choice["token_ids"]
        or [row["token_id"] for row in choice.get("logprobs", {"content": []})["content"]]
        not in ([], choice["token_ids"])
        for choice in choices_of(body)
    )


def unbuilt(difference: Difference, pair: Pair) -> bool:
    return (
        pair.case.path == GENERATE
        and pair.refused in ("features", "reasoning_ended")
        and (pair.body[pair.refused] is not None)
    )


DERENDER = f"{CHAT}/derender"
DEVIATIONS: Mapping[str, Meant] = {
    "type of a 400": type_is_one,
    "`param` of a 400": param_is_the_field,
    "`param` where a body may be of two kinds: `/tokenize`, derender": param_is_of_the_kind_that_was_sent,
    "`param` of what is wrong in `sampling_params`": param_is_inside,
    "refusals by the engine, streamed": refusal_is_a_status,
    "types in a body": type_is_strict,
    "null for a field": null_is_absent,
    "`chat_template` in `chat_template_kwargs`, trusted": refuses(
        TOKENIZE, "chat_template_kwargs", lambda body: "chat_template" in body["chat_template_kwargs"]
    ),
    "`prompt` and `messages` in one `/tokenize`": refuses(TOKENIZE, "prompt", lambda body: "messages" in body),
    "`documents`, `reasoning_effort` in `/tokenize`": ignored_fields_count,
    "ids out of the vocabulary in `/detokenize`": refuses(
        DETOKENIZE, "tokens", lambda body: NO_TOKEN in body["tokens"]
    ),
    "token that completes a broken sequence": broken_character_is_shown,
    "`bytes` of part of a character": bytes_are_the_tokens_own,
    "text that may begin a stop string": text_is_shown_at_once,
    "`prompt_logprobs` in a stream of `/inference/v1/generate`": prompt_is_scored_in_streams,
    "candidates in `top_logprobs` of `/inference/v1/generate`": candidates_are_all,
    "ids with `logprob_token_ids` in `/inference/v1/generate`": chosen_ids_are_all,
    "`logprob_token_ids: []` in `/inference/v1/generate`": fails(
        GENERATE, "logprob_token_ids", lambda body: body["sampling_params"].get("logprob_token_ids") == []
    ),
    "`max_tokens` beyond the context in `/inference/v1/generate`": refuses(
        GENERATE, "max_tokens", lambda body: body["sampling_params"]["max_tokens"] > MAX_MODEL_LEN
    ),
    "`features`, `content_parts`, `reasoning_ended`, `reasoning_parser_kwargs`, `prompt_logprob_token_ids`, "
    "`trace_decode_token_ids`": unbuilt,
    "`request_ids` that are no list of strings": either(
        refuses(ABORT, "request_ids", lambda body: isinstance(body["request_ids"], str)),
        fails(ABORT, "", lambda body: isinstance(body, list)),
    ),
    "`max_tokens` of 16 in what is rendered": tokens_are_told,
    "`top_p`, `top_k`, `min_p` in what is rendered for greedy sampling": greedy_sampling_is_as_asked,
    "`output_kind`, `skip_clone`, `skip_reading_prefix_cache` in what is rendered": vllms_flags_are_left_out,
    "`structured_outputs` in what is rendered": form_is_what_was_set,
    "`chat_request`, `completion_request` in derender": either(chat_request_counts, completion_request_counts),
    "`prompt_tokens` left out in derender": prompt_is_counted,
    "`system_fingerprint` of a derendered answer": fingerprint_is_the_servers,
    "`stream_state`": state_is_the_detokenizers,
    "`finish_reason` left out in derender, but for chunks": refuses(
        DERENDER,
        "generate_response",
        lambda body: any(choice.get("finish_reason") is None for choice in choices_of(body)),
    ),
    "ids out of the vocabulary, rows of other tokens, no choices in derender": refuses(
        DERENDER, "generate_response", cannot_be
    ),
}


def reasons(difference: Difference, pair: Pair) -> list[str]:
    """The deviations that account for the difference; none where it is not meant."""
    return [name for name, is_meant in DEVIATIONS.items() if is_meant(difference, pair)]
