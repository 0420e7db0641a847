"""Do the tests notice faults? Put some into the code, one at a time, and see which no test finds.

    python -m tests.mutants.run structgen/core/engines/json/value_graph/liveness.py --sample 40 --seed 1

Each fault (`operators`) is a process that runs the tests which `TESTS` names for the module, up to the first failure.
Survivors are printed; those that no test can tell from the original stand in ``survivors.txt`` with the reason.
Exit status 1: there are others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.mutants.operators import Mutant, mutants

ROOT = Path(__file__).parents[2]
ACCEPTED = Path(__file__).with_name("survivors.txt")
# Tests that must kill the faults of a module: the longest prefix counts. Fast ones first: the first failure ends it.
_JSON = "tests/core/engines/json"
_SMALL = [f"{_JSON}/{name}.py" for name in ("value_graph/test_liveness", "test_witnesses", "test_brute_force")]
TESTS: dict[str, list[str]] = {
    "structgen/core/engines/json": [_JSON],
    "structgen/core/engines/json/value_graph/liveness.py": _SMALL,
    "structgen/core/engines/json/value_graph/key_classes.py": _SMALL,
    "structgen/core/engines/json/tables/arrays.py": [f"{_JSON}/value_graph/test_liveness.py", _JSON],
    "structgen/core/engines/json/tables/verify.py": ["tests/core/kernels/checks", _JSON],
    "structgen/core/engines/json/numbers": [f"{_JSON}/numbers"],
    "structgen/core/json_schema": ["tests/core/json_schema", "tests/suite"],
    "structgen/core/regex": ["tests/core/regex"],
    "structgen/core/engines/composed": ["tests/core/engines/composed"],
    "structgen/generation/decoding": ["tests/generation/decoding"],
    "structgen/core/tool_calls": ["tests/core/tool_calls"],
    "structgen/core/engines/json/members.py": ["tests/core/tool_calls/test_walks.py"],
}


@dataclass(frozen=True)
class Fault:
    """One mutant of a module, by its number there."""

    path: str
    number: int
    mutant: Mutant

    @property
    def name(self) -> str:
        """What the list of accepted survivors calls it."""
        return f"{self.path} | {self.mutant.function} | {self.mutant.change}"


def tests_of(path: str) -> list[str]:
    """The tests for a module."""
    return TESTS[max((prefix for prefix in TESTS if path.startswith(prefix)), key=len)]


def modules(paths: list[str]) -> Iterator[str]:
    """Modules below the paths, kernels left out: faults in them would each take a minute to compile."""
    for path in paths:
        found = sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        yield from (str(file.relative_to(ROOT)) for file in found if "kernels" not in str(file))


def accepted() -> set[str]:
    """Survivors that are listed with a reason: ``path | function | change | reason``."""
    lines = ACCEPTED.read_text(encoding="utf-8").splitlines()
    return {line.rsplit(" | ", 1)[0] for line in lines if line.strip() and not line.startswith("#")}


def runs(fault: Fault | None, tests: list[str], limit: float) -> bool:
    """Whether the tests pass in time, with a fault or without."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = dict(os.environ)
    if fault is not None:
        module = fault.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        environment["STRUCTGEN_MUTANT"] = f"{module}:{fault.number}"
        command += ["-p", "tests.mutants.plugin"]
    try:
        done = subprocess.run(
            [*command, *tests], cwd=ROOT, env=environment, timeout=limit, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1) and fault is None:
        sys.stderr.write(done.stdout.decode()[-2000:] + done.stderr.decode()[-2000:])
    return done.returncode == 0


def survivors(path: str, faults: list[Fault], jobs: int) -> list[Fault]:
    """The faults of a module that its tests do not find."""
    tests, start = tests_of(path), time.monotonic()
    if not runs(None, tests, 3600):
        raise SystemExit(f"the tests of {path} fail without any fault: {' '.join(tests)}")
    limit = 30 + 3 * jobs * (time.monotonic() - start)
    with ThreadPoolExecutor(jobs) as pool:
        alive = pool.map(lambda fault: runs(fault, tests, limit), faults)
        return [fault for fault, lives in zip(faults, alive, strict=True) if lives]


def main() -> int:
    """Sample faults, run the tests with each, list the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths",
        nargs="*",
        default=["structgen/core/engines/json/value_graph/liveness.py", "structgen/core/engines/json/tables/arrays.py"],
    )
    parser.add_argument("--sample", type=int, default=40, help="faults a module (0: all)")
    parser.add_argument("--only", default="", help="faults whose name (path | function | change) holds this text")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    known, unknown = accepted(), 0
    for path in modules(arguments.paths):
        faults = [Fault(path, *pair) for pair in enumerate(mutants((ROOT / path).read_text(encoding="utf-8")))]
        faults = [fault for fault in faults if arguments.only in fault.name]
        if 0 < arguments.sample < len(faults):
            faults = Random(arguments.seed).sample(faults, arguments.sample)
        found = survivors(path, faults, arguments.jobs) if faults else []
        new = [fault for fault in found if fault.name not in known]
        unknown += len(new)
        print(f"{path}: {len(faults) - len(found)} of {len(faults)} killed, {len(found) - len(new)} survivors accepted")
        for fault in sorted(new, key=lambda fault: fault.mutant.line):
            print(f"  line {fault.mutant.line}: {fault.name}", flush=True)
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
