"""What lm-eval makes of a server: the tasks in `lm_eval`, scored through its local-completions."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.real_engine.servers import API_KEY, ENVIRONMENT, MODEL, Home

PROGRAM = Path(__file__).with_name("lm_eval") / "evaluate.py"
WAYS = ("ids by 1", "ids by 8", "text by 1", "text by 8")
"""What a prompt is sent as, and how many at a time."""

SECONDS = 300.0


class Run(NamedTuple):
    """By task."""

    scores: Mapping[str, Mapping[str, float]]
    """By metric."""
    loglikelihoods: Mapping[str, Any]
    """What the scores are made of, for each document."""


Runs = Mapping[str, Run]
"""For each of the ways."""

SCORED = pytest.StashKey[tuple[Runs, Runs]]()
"""Where Northbound's and vLLM's are kept for the end of the run."""


def evaluate(home: Home, url: str) -> Runs:
    output = home.logs / "lm-eval.json"
    command = [home.lm_eval, PROGRAM, url, MODEL, home.model, output]
    offline = {"HF_DATASETS_OFFLINE": "1", "HF_HOME": str(home.logs / "hf"), "OPENAI_API_KEY": API_KEY}
    ended = subprocess.run(
        command, env={**os.environ, **ENVIRONMENT, **offline}, capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return {way: Run(**run) for way, run in json.loads(output.read_text()).items()}


def table(ours: Runs, theirs: Runs) -> Sequence[str]:
    return [
        f"{way:10} {task} {metric:15} {score:9.4f} {theirs[way].scores[task][metric]:9.4f}"
        for way, run in ours.items()
        for task, scores in run.scores.items()
        for metric, score in scores.items()
    ]
