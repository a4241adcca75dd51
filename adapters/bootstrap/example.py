"""A request to try, for whoever started a server by hand."""

import socket

from adapters.bootstrap.addresses import address_of
from adapters.inbound.cli.settings import HttpSettings

ANY_HOST = ("0.0.0.0", "::")

_BODY = (
    '{"messages": [{"role": "user", "content": "Name three fruits."}], "max_tokens": 30, "temperature": 0, '
    '"logprobs": true}'
)


def example_request(settings: HttpSettings, bound: socket.socket) -> str | None:
    """A line for a shell. None where it would not be let in as it is."""
    if settings.api_key:
        return None
    if bound.family == socket.AF_UNIX:
        to = f"--unix-socket {bound.getsockname()} http://localhost"
    else:
        host, port = bound.getsockname()[:2]
        to = f"http://localhost:{port}" if host in ANY_HOST else address_of(bound)
    return f"curl -s {to}/v1/chat/completions -H 'content-type: application/json' -d '{_BODY}'"
