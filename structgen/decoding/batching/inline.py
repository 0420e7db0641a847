"""The scheduler without a thread: requests that are written while someone looks on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from structgen.decoding.batching.budget import SchedulerLimits
from structgen.decoding.batching.request import Event, Request
from structgen.decoding.batching.scheduler import Scheduler
from structgen.models.ragged_reader import RaggedReader

ROWS = 64  # written at once where rows can join later; the others wait


def write(
    reader: RaggedReader,
    requests: Sequence[Request],
    *,
    overlapped: bool = False,
    spell: Callable[[str], Sequence[int]] | None = None,
) -> Iterator[list[Event]]:
    """Write all requests to their ends, yielding what each step did. Each is what it would be on its own.

    Nobody waits for a step here, so prompts are read as they come. Rows that are left when this is closed, or when one
    has failed, are forgotten.

    Args:
        overlapped, spell: see ``Scheduler``.

    Raises:
        GenerationError, ModelError: what a request failed with.
    """
    rows = ROWS if reader.reads_apart else max(1, len(requests))
    limits = SchedulerLimits(rows=rows, waiting=None, step_factor=math.inf, late_seconds=None)
    scheduler = Scheduler(reader, limits, overlapped=overlapped, spell=spell)
    for request in requests:
        scheduler.submit(request)
    try:
        while not scheduler.is_idle:
            events = scheduler.step()
            for event in events:
                if event.error is not None:
                    raise event.error
            yield events
    finally:
        scheduler.close()
