"""Whether random requests come near every field."""

from collections import Counter

from tests.fuzz.requests import ENDPOINT
from tests.http.test_fields import DEFAULTS

RARE = {"continue_final_message", "structured_outputs"}
"""What random requests rarely come with what it needs beside it, or a mock engine does not do."""


def never_answered(counted: Counter[str]) -> list[str]:
    """The fields that are served, by the schemas, and asked for in no request that was answered: `field of path`."""
    return [
        f"{name} of {path}"
        for path, endpoint in ENDPOINT.items()
        for name in sorted(endpoint.typed.keys() - DEFAULTS[path].keys() - RARE)
        if not counted[f"{name} of {path}"]
    ]
