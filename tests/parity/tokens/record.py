"""Records what vLLM's Python frontend answers: `python -m tests.parity.tokens.record VLLM`."""

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from tests.parity.record import fastapi
from tests.parity.tokens.cases import CASES

REFERENCE = Path(__file__).with_name("reference.jsonl.gz")
SERVER = "tokens"


def answer_of(reply: httpx.Response) -> dict[str, Any]:
    """The status, and the body or the events."""
    if reply.headers.get("content-type", "").startswith("text/event-stream"):
        events = [event.removeprefix("data: ") for event in reply.text.strip().split("\n\n")]
        assert events.pop() == "[DONE]"
        return {"status": reply.status_code, "events": [json.loads(event) for event in events]}
    return {"status": reply.status_code, "body": reply.json() if reply.content else None}


def read_reference() -> dict[str, dict[str, Any]]:
    """Answers by the names of their cases."""
    with gzip.open(REFERENCE, "rt") as file:
        return dict(map(json.loads, file))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vllm", type=Path, help="the program")
    vllm = parser.parse_args().vllm
    lines = []
    with tempfile.TemporaryDirectory() as folder, fastapi(vllm, Path(folder), SERVER) as (client, _):
        for case in CASES:
            try:
                reply = client.post(case.path, json=case.body, headers={"connection": "close"})
            except httpx.ReadTimeout:
                raise AssertionError(f"no answer: {case.name}") from None
            lines.append(json.dumps([case.name, answer_of(reply)], ensure_ascii=False) + "\n")
    with REFERENCE.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.writelines(line.encode() for line in lines)
    sys.stdout.write(f"{len(lines)} answers\n")


if __name__ == "__main__":
    main()
