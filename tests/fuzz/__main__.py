"""Fuzzing: random constraints and texts through the engine, judged by others (`make fuzz`).

    python -m tests.fuzz --minutes 10 --seed 1 [--workers 2] [--only json,expressions] [--texts 20000000]
    python -m tests.fuzz --replay '{"area": "json", "seed": 1000000007}'

Areas and their shares stand in `areas.py`. A run prints its seed, and with it can be run again. What fails is shrunk
and appended to a file of cases (tests/fuzz/cases/new.jsonl), which `test_cases.py` replays; a case whose fault is
repaired moves to found.jsonl there. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

from tests.fuzz import areas
from tests.fuzz.log import line, report, write_cases
from tests.fuzz.runner import fuzz, shrunk

CASES = Path(__file__).parent / "cases" / "new.jsonl"


def main() -> int:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=None, help="base seed; without it, a random one")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help=f"areas, separated by commas: {', '.join(areas.SHARES)}")
    parser.add_argument("--texts", type=int, default=None, help="stop after so many texts")
    parser.add_argument("--cases", type=Path, default=CASES, help="file that shrunk failures are appended to")
    parser.add_argument("--log", type=Path, default=None, help="file for the report in Markdown")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds after which a unit hangs")
    parser.add_argument("--replay", default=None, help="a case as JSON")
    arguments = parser.parse_args()
    if arguments.replay:
        wrong = areas.replay(json.loads(arguments.replay))
        print(wrong or "right")
        return int(wrong is not None)
    only = [name for name in arguments.only.split(",") if name]
    if unknown := set(only) - set(areas.SHARES):
        parser.error(f"no such area: {', '.join(unknown)}")
    seed = random.randrange(1, 100_000) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {arguments.workers} workers", flush=True)
    run = fuzz(
        seed,
        arguments.minutes,
        arguments.workers,
        only=only,
        texts=arguments.texts,
        patience=arguments.patience,
        progress=lambda run: print(line(run), flush=True),
    )
    print(line(run), flush=True)
    cases = shrunk(run.cases)
    write_cases(arguments.cases, cases)
    text = report(run, cases, os.environ.get("NUMBA_BOUNDSCHECK") == "1")
    print(text)
    if arguments.log:
        arguments.log.write_text(text + "\n")
    return int(bool(run.kinds))


if __name__ == "__main__":
    sys.exit(main())
