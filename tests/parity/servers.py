"""How the servers are started that are asked: Northbound and vLLM's frontend with the same flags."""

from collections.abc import Mapping, Sequence

from tests.parity.engine import MAX_MODEL_LEN
from tests.parity.model import NAME

SERVERS: Mapping[str, Sequence[str]] = {
    "plain": (),
    "flagged": (
        "--return-tokens-as-token-ids",
        "--enable-force-include-usage",
        "--enable-prompt-tokens-details",
        "--enable-request-id-headers",
        "--trust-request-chat-template",
        *("--max-logprobs", "5"),
        *("--response-role", "bot"),
        *("--default-chat-template-kwargs", '{"style": "big"}'),
        *("--fingerprint-mode", "custom"),
        *("--fingerprint-value", "ours"),
        *(
            "--override-generation-config",
            '{"temperature": 0.5, "top_k": 5, "repetition_penalty": 1.1, "max_new_tokens": 9}',
        ),
    ),
}
"""Flags by name."""

OF_TOKENS: Mapping[str, Sequence[str]] = {"tokens": ("--enable-scale-out", "--trust-request-chat-template")}
"""Those of the server whose routes for tokens are asked."""


SHOW_IDS = ("flagged",)
"""Those whose logprobs have ids for tokens, unless a request says otherwise."""


def flags(server: str) -> list[str]:
    return ["--served-model-name", NAME, "--max-model-len", str(MAX_MODEL_LEN), *{**SERVERS, **OF_TOKENS}[server]]
