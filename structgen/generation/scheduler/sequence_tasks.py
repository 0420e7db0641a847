"""What is done for sequences between two calls of the model, in the loop or after it; those that are late; turns."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from structgen.errors import MaskTimeoutError
from structgen.generation.scheduler.budget import REFRESH, PieceTime, SchedulerLimits, StepCost
from structgen.generation.scheduler.prompt_pieces import SHORT_TOKENS
from structgen.generation.scheduler.request import Handle, State
from structgen.generation.scheduler.tasks import PROBATION, Task, TaskThreads

WORTH = 1.15  # times what a sequence takes in a step of many: what it may take in one of fewer


class SequenceTurns:
    """Shares out the sequences of a step, and whose prompts it reads.

    A caller's sequences hold up those of others by ``step_factor`` at most, as its prompts do: where a step of all
    sequences takes longer than that, each caller has as many of its sequences written as fit, those first that have
    waited longest, and its prompts are read in every second step, in their stead. A short prompt counts as a sequence
    of its caller, so that it is not read beside all sequences of another. Where others have asked lately, the sequences
    of one caller take a piece at most, and less where fewer take hardly more time each, so that the next request does
    not wait for all. Where a step costs the same for one sequence and for many (on an accelerator), all are written.

    Args:
        limits: ``step_factor`` of them.
        cost: what steps take.
        piece: how long a step of one caller may take.
    """

    def __init__(self, limits: SchedulerLimits, cost: StepCost, piece: PieceTime) -> None:
        self._limits, self._cost, self._piece = limits, cost, piece
        self._steps = 0

    def chosen(self, writing: Sequence[Handle], reading: Sequence[Handle]) -> tuple[list[Handle], set[str]]:
        """The sequences that are written in the next step, in their order, and keys whose prompts wait for the one
        after."""
        self._steps += 1
        short = [handle for handle in reading if handle.length - handle.cached_tokens <= SHORT_TOKENS]
        sequences = Counter(handle.request.key for handle in [*writing, *short])
        most = self._most(sequences)
        left = {handle.request.key: most for handle in writing}
        waiting = set[str]()
        for key in {handle.request.key for handle in reading} & set(left) if len(sequences) > 1 else ():
            if sequences[key] > most:  # it has its part of the step by either
                if self._steps % 2:
                    left[key] = 0
                else:
                    waiting.add(key)
        result = set[int]()
        for handle in sorted(writing, key=lambda handle: handle.turn):
            if left[handle.request.key]:
                left[handle.request.key] -= 1
                handle.turn = self._steps
                result.add(id(handle))
        return [handle for handle in writing if id(handle) in result], waiting

    def _most(self, sequences: Counter[str]) -> int:
        """How many sequences of each key a step writes."""
        largest = max(sequences.values(), default=0)
        is_alone = len(sequences) < 2
        if self._limits.step_factor == math.inf or (is_alone and not self._piece.has_several):
            return largest
        most = 1 if is_alone else min(sequences.values())
        bound = self._limits.step_factor * self._cost.seconds(most)
        if is_alone:
            bound = max(bound, self._piece.seconds)
        while most < largest and self._cost.seconds(sum(min(count, most + 1) for count in sequences.values())) <= bound:
            most += 1
        if is_alone and self._cost.is_known(most):
            most = self._fewest(most)
        return most if self._steps % REFRESH else min(largest, 2 * most)  # now and then, what more of them cost

    def _fewest(self, most: int) -> int:
        """The fewest sequences that take hardly more time each than ``most`` do, and half as long a step; else
        ``most``."""
        whole = self._cost.seconds(most)
        for count in range(1, most):
            seconds = self._cost.seconds(count)
            if 2 * seconds > whole:
                break
            if seconds * most <= WORTH * whole * count:
                return count
        return most


Fail = Callable[[Handle, Exception], None]


class SequenceTasks:
    """Does what is to be done for sequences, one thing at a time for each.

    Args:
        patience: seconds that a sequence is waited for; None: everything is done in the calling thread.
        limit: seconds after which a late sequence fails; None: never.
        fail: called with a sequence that raised, and what.
    """

    def __init__(self, patience: float | None, limit: float | None, fail: Fail) -> None:
        self._patience, self._limit, self._fail = patience, limit, fail
        self._threads = None if patience is None else TaskThreads(patience)

    def do(self, acts: Sequence[tuple[Handle, Callable[[], None]]]) -> list[bool]:
        """Do something for each of these sequences: whether it is done, and without an error. Of a sequence that is
        late ``Handle.task`` is set, until ``settled`` returns it."""
        tasks = [Task(handle.output, act) for handle, act in acts]
        waited = []
        for (handle, _), task in zip(acts, tasks, strict=True):
            if self._threads is None or handle.output.matcher is None:
                task.run()
            elif handle.probation:
                self._threads.begin(task)
            else:
                waited.append(task)
        if self._threads is not None:
            self._threads.run(waited)
        return [self._is_done(handle, task) for (handle, _), task in zip(acts, tasks, strict=True)]

    def settled(self, handles: Iterable[Handle]) -> list[Handle]:
        """Which of these sequences were late and are no longer; sequences that are too late fail."""
        if self._threads is None:
            return []
        self._threads.finished()
        now = time.monotonic()
        result = []
        for handle in handles:
            task = handle.task
            if task is None or handle.state is State.DONE:
                continue
            if task.is_done:
                handle.task = None
                if self._is_done(handle, task):
                    result.append(handle)
            elif self._limit is not None and task.started is not None and now - task.started > self._limit:
                self._fail(handle, MaskTimeoutError(_too_late(handle, self._limit)))
        return result

    def wait(self, seconds: float) -> None:
        """Until a late sequence is ready, at most so long."""
        if self._threads is not None:
            self._threads.wait(seconds)

    def idle(self) -> None:
        """Nothing is to be done for now."""
        if self._threads is not None:
            self._threads.idle()

    def _is_done(self, handle: Handle, task: Task) -> bool:
        if not task.is_done:
            handle.task = task
            return False
        if self._patience is not None:
            is_late = task.seconds > self._patience
            handle.late_masks += is_late
            _judge(handle, is_late)
        if task.error is not None:
            self._fail(handle, task.error)
        return task.error is None


def _judge(handle: Handle, is_late: bool) -> None:
    """How many tasks in time a sequence owes after this one: twice as many as the last time, half where it was long
    ago."""
    if is_late:
        handle.owed = min(PROBATION, 2 * handle.owed or 1)
        handle.probation = handle.owed
    elif handle.probation:
        handle.probation -= 1
    else:
        handle.owed //= 2


def _too_late(handle: Handle, limit: float) -> str:
    return (
        f"What the constraint allows after {handle.streamed} tokens was not found within {limit:g} s "
        "(max_mask_seconds); simplify the constraint, or allow more time."
    )
