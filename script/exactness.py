"""Checks many random streams, on all processors, and reports how many were hard and in which way."""

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.exactness.run import Result, run
from tests.exactness.shares import LEAST, STREAMS, table, too_few

BATCH = 500
MOST_SHOWN = 3
"""Failures that are printed in full."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/exactness", description="Exactness of random streams.")
    parser.add_argument("--streams", type=int, default=100_000, metavar="N", help="how many (default: 100000)")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="try the tokenizer of this model, too")
    parser.add_argument("--seed", default=str(int(time.time())), help="other streams for each (default: the time)")
    parser.add_argument("--only", type=int, metavar="N", help="run stream N of the seed again, and no other")
    given = parser.parse_args()
    if given.only is not None:
        return report(run(given.seed, [given.only], given.model), given.seed, 0.0, is_one=True)
    start = time.monotonic()
    total = Result(Counter(), [])
    batches = [range(first, min(first + BATCH, given.streams)) for first in range(0, given.streams, BATCH)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(run, *zip(*((given.seed, batch, given.model) for batch in batches), strict=True)):
            total = Result(total.counted + result.counted, total.failures + result.failures)
            if total.counted[STREAMS] % 10_000 == 0:
                print(f"{total.counted[STREAMS]} streams, {len(total.failures)} failed", file=sys.stderr, flush=True)
    return report(total, given.seed, time.monotonic() - start)


def report(result: Result, seed: str, seconds: float, is_one: bool = False) -> int:
    for failure in result.failures[:MOST_SHOWN]:
        print(f"\nFAILED: {failure}")
    print(f"\n{result.counted[STREAMS]} streams of seed {seed}, {len(result.failures)} failed, in {seconds:.0f} s")
    print(table(result.counted))
    short = [] if is_one else too_few(result.counted)
    for name in short:
        print(f"too few with {name}: at least {LEAST[name]:.0%} are wanted")
    return 1 if result.failures or short else 0


if __name__ == "__main__":
    sys.exit(main())
