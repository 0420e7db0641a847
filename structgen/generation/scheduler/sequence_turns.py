"""Which rows a step writes: all, unless many rows of one caller would hold up the few of another."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from structgen.generation.scheduler.budget import SchedulerLimits, StepCost
from structgen.generation.scheduler.request import Handle


class SequenceTurns:
    """Shares out the rows of a step.

    A caller's rows hold up those of others by ``step_factor`` at most, as its prompts do: where a step of all rows
    takes longer than that, each caller has as many of its rows written as fit, those first that have waited longest.
    Where a step costs the same for one row and for many (on an accelerator), all rows are written.

    Args:
        limits: ``step_factor`` of them.
        cost: what steps take.
    """

    def __init__(self, limits: SchedulerLimits, cost: StepCost) -> None:
        self._limits, self._cost = limits, cost
        self._steps = 0

    def chosen(self, writing: Sequence[Handle]) -> list[Handle]:
        """The rows that are written in the next step, in their order."""
        self._steps += 1
        most = self._most(Counter(handle.request.key for handle in writing))
        left = {handle.request.key: most for handle in writing}
        found = set[int]()
        for handle in sorted(writing, key=lambda handle: handle.turn):
            if left[handle.request.key]:
                left[handle.request.key] -= 1
                handle.turn = self._steps
                found.add(id(handle))
        return [handle for handle in writing if id(handle) in found]

    def _most(self, rows: Counter[str]) -> int:
        """How many rows of each key a step writes."""
        largest = max(rows.values(), default=0)
        if len(rows) < 2 or self._limits.step_factor == math.inf:
            return largest
        most = min(rows.values())
        bound = self._limits.step_factor * self._cost.seconds(most)
        while most < largest and self._cost.seconds(sum(min(count, most + 1) for count in rows.values())) <= bound:
            most += 1
        return most
