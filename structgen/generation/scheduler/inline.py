"""The scheduler without a thread: requests that are written while someone looks on."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import TypeAlias

from structgen.errors import GenerationError
from structgen.generation.models.model_runner import RaggedReader
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Event, Handle, Request, State
from structgen.generation.scheduler.scheduler import Scheduler

SEQUENCES = 64  # written at once where sequences can join later; the others wait
Spell: TypeAlias = "Callable[[str], Sequence[int]]"


def write(
    reader: RaggedReader, requests: Sequence[Request], *, overlapped: bool = False, spell: Spell | None = None
) -> Iterator[list[Event]]:
    """Write all requests to their ends, yielding what each step did. Arguments as ``steps``.

    Raises:
        GenerationError, ModelError: what a request failed with; those that are left are forgotten.
    """
    sequences = SEQUENCES if reader.reads_apart else max(1, len(requests))
    yield from raising(steps(reader, requests, sequences=sequences, overlapped=overlapped, spell=spell))


def raising(written: Generator[list[Event], None, None]) -> Iterator[list[Event]]:
    """What ``steps`` yields, until a request fails.

    Raises:
        GenerationError, ModelError: what it failed with; those that are left are forgotten.
    """
    with closing(written) as each:
        for events in each:
            for event in events:
                if event.error is not None:
                    raise event.error
            yield events


def steps(
    reader: RaggedReader,
    requests: Iterable[Request | None],
    *,
    sequences: int = SEQUENCES,
    overlapped: bool = False,
    spell: Spell | None = None,
) -> Generator[list[Event], None, None]:
    """Write requests, yielding what each step did; the error of one is its last event. Each is what it would be on its
    own.

    Nobody waits for a step here, so prompts are read as they come. What is left when this is closed is forgotten.

    Args:
        requests: taken as sequences come free (as all are done, where sequences cannot join others). None: nothing to
            write, in a turn of its own, so that whoever gives the requests is heard between them.
        sequences: written at once.
        overlapped, spell: see ``Scheduler``.
    """
    limits = SchedulerLimits(
        sequences=sequences, waiting=None, step_factor=math.inf, piece_seconds=math.inf, late_seconds=None
    )
    scheduler = Scheduler(reader, limits, overlapped=overlapped, spell=spell)
    coming = iter(requests)
    try:
        while True:
            free = sequences - scheduler.running - scheduler.waiting if reader.reads_apart or scheduler.is_idle else 0
            taken = list(islice(coming, free))
            refused = [event for request in taken if request is not None and (event := _submit(scheduler, request))]
            if scheduler.is_idle and not taken:
                return
            yield [*refused, *scheduler.step()]
    finally:
        scheduler.close()


def _submit(scheduler: Scheduler, request: Request) -> Event | None:
    """Submit a request; the event of one that is refused."""
    try:
        scheduler.submit(request)
    except GenerationError as error:
        return Event(Handle(request, 0.0, State.DONE, error), (), (), error=error)
    return None
