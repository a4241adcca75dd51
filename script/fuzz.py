"""Sends many random requests, on all processors, and reports what came of them."""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from schemathesis import GenerationMode

from tests.fuzz import api
from tests.fuzz.run import SENT, Result, run
from tests.fuzz.servers import KINDS
from tests.fuzz.shares import never_answered

BATCH = 500
PER_DOCUMENT = 100
"""Bodies to one that schemathesis makes, for each route and whether or not it is to fit."""


def batch(seed: str, number: int, examples: int) -> Result:
    return run(KINDS[number % len(KINDS)], f"{seed}:{number}", examples)


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/fuzz", description="Random requests: no 500, no hang, nothing left.")
    parser.add_argument("--bodies", type=int, default=20_000, metavar="N", help="how many (default: 20000)")
    parser.add_argument("--seed", default=str(int(time.time())), help="other ones for each (default: the time)")
    parser.add_argument("--only", type=int, metavar="N", help="run batch N of the seed again, and nothing else")
    given = parser.parse_args()
    if given.only is not None:
        return report(batch(given.seed, given.only, BATCH), [], given.seed)
    start = time.monotonic()
    total: Counter[str] = Counter()
    failures: list[str] = []
    sizes = [min(BATCH, given.bodies - first) for first in range(0, given.bodies, BATCH)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        described = {
            (label, mode): pool.submit(api.run, label, mode, given.seed, given.bodies // PER_DOCUMENT)
            for label in api.operations()
            for mode in GenerationMode
        }
        for number, result in enumerate(pool.map(batch, [given.seed] * len(sizes), range(len(sizes)), sizes)):
            total += result.counted
            if result.failure is not None:
                failures.append(f"--seed {given.seed} --only {number}\n{result.failure}")
            if total[SENT] % 5000 == 0:
                print(f"{total[SENT]} requests, {len(failures)} failures", file=sys.stderr, flush=True)
        for (label, mode), future in described.items():
            counted, failure = future.result()
            print(f"{label}, {mode} by the document: {dict(counted)}")
            if failure is not None:
                failures.append(failure)
    print(f"in {time.monotonic() - start:.0f} s")
    return report(Result(total, None), failures, given.seed)


def report(result: Result, failures: list[str], seed: str) -> int:
    failures = [*failures, *([result.failure] if result.failure else [])]
    for failure in failures:
        print(f"\nFAILED: {failure}")
    for outcome, count in sorted(result.counted.items()):
        if " of " not in outcome:
            print(f"{count:8} {outcome}")
    missing = never_answered(result.counted)
    print(f"fields never answered: {', '.join(missing) or 'none'}")
    print(f"{result.counted[SENT]} requests of seed {seed}, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
