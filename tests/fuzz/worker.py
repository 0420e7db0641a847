"""A process that runs units one after the other and says which one is in flight, so that its loss can be told."""

from __future__ import annotations

import faulthandler
import resource
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

REPORT_EVERY = 1.0  # seconds
UNITS, MEGABYTES = 4_000, 800  # then a fresh process: memory that grows shows, and does not end the run
SEED, STARTED = 0, 1


def work(connection: Any, flight: Any, seeds: Any, only: Sequence[str]) -> None:
    """Run the units of ``seeds`` (a range), and report (tally, cases, next seed, megabytes) from time to time.

    ``flight``: float64[2] of shared memory: the seed in flight and when it began (monotonic; 0: none).
    """
    from tests.fuzz.areas import area_of, run

    faulthandler.enable()
    tally: Counter[str] = Counter()
    cases: list[dict[str, Any]] = []
    last = time.monotonic()
    for number, seed in enumerate(seeds):
        flight[SEED], flight[STARTED] = seed, time.monotonic()
        area = area_of(seed, only)
        cases += run(area, seed, tally)
        now = time.monotonic()
        tally[f"seconds {area}"] += now - flight[STARTED]
        flight[STARTED] = 0
        if now - last > REPORT_EVERY or number + 1 == min(UNITS, len(seeds)) or megabytes() > MEGABYTES:
            connection.send((tally, cases, seed + seeds.step, megabytes()))
            tally, cases, last = Counter(), [], now
        if number + 1 == UNITS or megabytes() > MEGABYTES:
            return


def megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
