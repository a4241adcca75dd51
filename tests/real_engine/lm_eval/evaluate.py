"""Scores the tasks of this folder in every way of asking that local-completions knows: evaluate.py URL MODEL TOKENIZER
OUTPUT. Runs in the environment of lm-eval, and writes JSON."""

import json
import os
import sys
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import lm_eval
from lm_eval.tasks import TaskManager

MAX_LENGTH = 512
"""In tokens. The longest document is longer, and is scored in windows."""


def main(url: str, model: str, tokenizer: str, output: str) -> None:
    os.chdir(Path(__file__).parent)  # what the tasks' files are relative to
    tasks = TaskManager(include_path=".", include_defaults=False)
    target = {"base_url": f"{url}/v1/completions", "model": model, "tokenizer": tokenizer, "max_length": MAX_LENGTH}
    runs = {}
    for is_tokenized, batch_size in product([True, False], [1, 8]):
        evaluated = lm_eval.simple_evaluate(
            "local-completions",
            model_args={**target, "tokenized_requests": is_tokenized},
            tasks=tasks.all_tasks,
            task_manager=tasks,
            batch_size=batch_size,
            bootstrap_iters=0,
        )
        runs[f"{'ids' if is_tokenized else 'text'} by {batch_size}"] = {
            "scores": {task: scores(results) for task, results in evaluated["results"].items()},
            "loglikelihoods": {task: loglikelihoods(samples) for task, samples in evaluated["samples"].items()},
        }
    Path(output).write_text(json.dumps(runs))


def scores(results: Mapping[str, Any]) -> dict[str, float]:
    return {name.removesuffix(",none"): value for name, value in results.items() if isinstance(value, float)}


def loglikelihoods(samples: Iterable[Mapping[str, Any]]) -> list[Any]:
    """For each document, of each of its endings with whether it is the greedy one; or of the whole."""
    return [sample["filtered_resps"] for sample in sorted(samples, key=lambda sample: sample["doc_id"])]


main(*sys.argv[1:])
