"""Puts load on a frontend by `vllm-rs bench serve`."""

import json
import subprocess
import tempfile
from pathlib import Path

from tests.bench.load import Load
from tests.bench.workloads import MODEL, Workload

MOST_SECONDS = 600


def put_load(program: Path, tokenizer: Path, address: str, workload: Workload, seed: int) -> Load:
    """Prompts are made of random tokens. Raises CalledProcessError, TimeoutExpired."""
    host, _, port = address.removeprefix("http://").partition(":")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            str(program), "bench", "serve",
            "--backend", "openai-chat" if workload.is_chat else "openai",
            "--endpoint", workload.path, "--host", host, "--port", port,
            "--model", MODEL, "--tokenizer", str(tokenizer), "--seed", str(seed),
            "--dataset-name", "random", "--random-input-len", str(workload.prompt),
            "--random-output-len", str(workload.answer), "--ignore-eos",
            "--num-prompts", str(workload.requests), "--max-concurrency", str(workload.streams),
            "--extra-body", json.dumps({"temperature": 0} | workload.fields),
            "--percentile-metrics", "ttft,itl", "--metric-percentiles", "50,99",
            "--disable-tqdm", "--no-steady-state",
            "--save-result", "--result-dir", folder, "--result-filename", "result.json",
        ]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)
        result = json.loads((Path(folder) / "result.json").read_text())
    is_answered = result["completed"] > 0
    return Load(
        tokens=result["total_output_tokens"],
        seconds=result["duration"],
        failures=workload.requests - result["completed"],
        ttft_ms_p50=result["p50_ttft_ms"] if is_answered else None,
        ttft_ms_p99=result["p99_ttft_ms"] if is_answered else None,
        itl_ms_p50=result["p50_itl_ms"] if is_answered else None,
        itl_ms_p99=result["p99_itl_ms"] if is_answered else None,
    )
