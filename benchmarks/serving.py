"""Load, faults and abuse: a real server on the built-in model, and what its clients see.

    python benchmarks/serving.py                                  all measurements (about 20 minutes on two cores)
    python benchmarks/serving.py --only together shared           some of them
    python benchmarks/serving.py --list                           their names, questions and bars
    python benchmarks/serving.py --draft auto                     with drafts

Each measurement is a number with a bar, most of them ratios within one run, by turns, since other work on the machine
disturbs seconds more. Results are appended to results/serving/measurements.jsonl as they come, and the table of the
latest of each is written to results/serving/table.md.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import math
import os
import platform
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # what is measured

from serving_load import (  # noqa: E402, F401
    abuse,
    equality,
    faults,
    growth,
    latency,
    lone,
    siege,
    soak,
    steps,
    throughput,
)  # fmt: skip
from serving_load.lab import Lab  # noqa: E402
from serving_load.measurements import MEASUREMENTS, Found, Measurement  # noqa: E402


async def _made(one: Measurement, lab: Lab) -> Found:
    return await one.run(lab)


def run(one: Measurement, lab: Lab) -> dict[str, Any]:
    """The record of a measurement; one that fails has an error in place of a value."""
    record: dict[str, Any] = {
        "name": one.name,
        "question": one.question,
        "bar": one.bar,
        "sense": one.sense,
        "unit": one.unit,
        "draft": lab.draft,
        "backend": lab.backend,
    }
    print(f"{one.name}: {one.question}", file=sys.stderr, flush=True)
    start = time.monotonic()
    try:
        found: Found = asyncio.run(_made(one, lab))
    except Exception as error:
        traceback.print_exc()
        record |= {"value": None, "passed": False, "wrong": f"{type(error).__name__}: {error}"[:500], "details": {}}
    else:
        value = None if math.isnan(found.value) else round(found.value, 4)
        record |= {"value": value, "passed": one.is_met(found), "wrong": found.wrong, "details": found.details}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record |= {"seconds": round(time.monotonic() - start, 1), "when": now, "cores": os.cpu_count()}
    record |= {"machine": platform.machine(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    shown = f"{record['value']} {one.unit} ({one.sense} {one.bar:g}): {'met' if record['passed'] else 'NOT MET'}"
    shown += f" ({record['wrong']})" if record["wrong"] else ""
    print(f"    {shown}, {record['seconds']} s", file=sys.stderr, flush=True)
    return record


def table(records: list[dict[str, Any]]) -> str:
    """The latest record of each measurement, in Markdown."""
    latest = {(record["name"], record["draft"], record.get("backend")): record for record in records}
    lines = ["| measurement | model by, drafts | question | bar | value | met |", "|---|---|---|---|---:|---|"]
    for name in MEASUREMENTS:
        for record in latest.values():
            if record["name"] == name:
                value = "-" if record["value"] is None else f"{record['value']:.3g} {record['unit']}".strip()
                bar = f"{record['sense']} {record['bar']:g}"
                met = "yes" if record["passed"] else f"**no** {record['wrong'][:100]}".strip()
                draft = f"{record.get('backend')}, {record['draft'] or 'none'}"
                lines.append(f"| {name} | {draft} | {record['question']} | {bar} | {value} | {met} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """See the module's docstring; 1 where a bar is not met."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=sorted(MEASUREMENTS), metavar="NAME", default=list(MEASUREMENTS))
    parser.add_argument("--draft", help="drafts of the server and the model, such as auto")
    parser.add_argument("--backend", default="transformers", help="what runs the model: transformers or llamacpp")
    parser.add_argument("--scale", type=float, default=1.0, help="how much of each is made; 1: all")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "serving")
    parser.add_argument("--list", action="store_true", help="what there is")
    given = parser.parse_args()
    if given.list:
        for one in MEASUREMENTS.values():
            print(f"{one.name:14} {one.sense} {one.bar:g} {one.unit}: {one.question}")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are ended
    lab, met = Lab(given.draft, given.backend, given.scale), True
    path = given.out / "measurements.jsonl"
    try:
        for name in dict.fromkeys(given.only):
            record = run(MEASUREMENTS[name], lab)
            met = met and record["passed"]
            with path.open("a") as file:
                print(json.dumps(record), file=file)
            records = [json.loads(line) for line in path.read_text().splitlines()]
            (given.out / "table.md").write_text(table(records))
    finally:
        lab.close()
    print(table([json.loads(line) for line in path.read_text().splitlines()]))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
