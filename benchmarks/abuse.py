"""A server under abuse: hostile clients alone, six at once, and for minutes; tables for docs/security.md.

    python benchmarks/abuse.py alone --markdown             each hostile client, a good one beside it (8 minutes)
    python benchmarks/abuse.py six --markdown               six at once (2 minutes)
    python benchmarks/abuse.py soak --minutes 15 --markdown good requests, judged, with all abuse mixed in
    python benchmarks/abuse.py alone --only "300,000 emoji" --seconds 3
    python benchmarks/abuse.py --list                       what there is

What was found is written to results/serving/abuse-MODE.json as well. The exit code is 1 where a bar is not met.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # what is measured

from serving_load import siege, soak  # noqa: E402
from serving_load.attackers import ATTACKS  # noqa: E402
from serving_load.lab import Lab  # noqa: E402
from serving_load.measurements import Found  # noqa: E402


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=("alone", "six", "soak"), nargs="?", default="alone")
    parser.add_argument("--only", nargs="+", choices=sorted(ATTACKS), metavar="NAME", help="in place of all")
    parser.add_argument("--seconds", type=float, default=siege.SECONDS, help="of each part: before, during, after")
    parser.add_argument("--minutes", type=float, default=soak.MINUTES, help="of the soak")
    parser.add_argument("--settle", type=float, default=siege.SETTLE_SECONDS, help="longest wait for memory, seconds")
    parser.add_argument("--backend", default="llamacpp", help="what runs the model: transformers or llamacpp")
    parser.add_argument("--nice", type=int, default=0, help="how far attackers give way; 19: as if they were elsewhere")
    parser.add_argument("--markdown", action="store_true", help="print the table for docs/security.md")
    parser.add_argument("--list", action="store_true", help="print the hostile clients")
    given = parser.parse_args()
    if given.list:
        print("\n".join(ATTACKS))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are ended
    found = asyncio.run(_run(given, Lab(None, given.backend)))
    out = ROOT / "benchmarks" / "results" / "serving" / f"abuse-{given.mode}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    told = {"value": found.value, "wrong": found.wrong, "cores": os.cpu_count(), "details": found.details}
    out.write_text(json.dumps(told, indent=1) + "\n")
    print((soak if given.mode == "soak" else siege).markdown(found) if given.markdown else json.dumps(told))
    is_met = not found.wrong and found.value <= (0 if given.mode == "soak" else siege.MAX_RATIO)
    return 0 if is_met else 1


async def _run(given: argparse.Namespace, lab: Lab) -> Found:
    if given.mode == "soak":
        return await soak.soak(lab, given.minutes, given.settle)
    if given.mode == "six":
        sets = [given.only] if given.only else siege.AT_ONCE
    else:
        sets = [[name] for name in given.only] if given.only else siege.ALONE
    return await siege.siege(lab, sets, given.seconds, given.settle, given.nice)


if __name__ == "__main__":
    sys.exit(main())
