"""Prints how Northbound's answers compare with the recorded ones, and what was asked. See script/record-parity."""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.parity.answers import read_reference
from tests.parity.compared import changed, compare, summary
from tests.parity.corpus import CORPUS
from tests.parity.coverage import missing, table


def main() -> int:
    """1 where something differs that is not meant to, or is not asked, or was not recorded."""
    head, recorded = read_reference()
    with tempfile.TemporaryDirectory() as folder:
        compared = asyncio.run(compare(Path(folder)))
    unmeant = [f"{each.case.name}: {difference}" for each in compared for difference in each.unmeant]
    lacking = [f"not asked: {each}" for each in missing(CORPUS, head["fields"])]
    unrecorded = [f"not recorded as it is: {name}" for name in changed(recorded)]
    for line in (*table(CORPUS), "", *summary(compared), *unmeant, *lacking, *unrecorded):
        sys.stdout.write(f"{line}\n")
    return int(bool(unmeant or lacking or unrecorded))


if __name__ == "__main__":
    sys.exit(main())
