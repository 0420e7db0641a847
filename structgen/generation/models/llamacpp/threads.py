"""How many threads a call of llama.cpp takes: as many as pay, found by timing the calls themselves.

Threads of llama.cpp wait for each other at every operation of a model, hundreds of times a token. What that costs
depends on the model, on how many tokens are read at once, and on what else the machine does: two threads that share a
core with other work take ten times as long as one. So each size of call has a choice of its own. It is looked at again
after some calls, and at once where calls grow slow. Where the system says how many processors other work leaves, no
call has more threads than that.

The logits after a single token depend on the number of threads in their last bits where 512 cells or more are in use:
llama.cpp's flash attention then adds up a part a thread. Whoever needs them alike names a number.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from structgen.generation.models.llamacpp.binding import LlamaContext

WEIGHT = 0.25  # of the latest call in the running mean
TRIAL = 2  # calls
LONG_TRIAL = 4  # of more threads: one that has slept for long is let on before others, so the first calls look quick
GAIN = 0.97  # of the time so far that another number must stay below
HOPELESS = 1.3  # times the time so far, after which a trial ends with its first call
SLOW = 1.5  # times what it was: calls have grown slow
LEAST, MOST = 4, 256  # calls between two trials: twice as many each time
DOUBT = 32  # times sooner than usual another number is tried once one was left: it may have been slow by chance
LARGEST = 7  # calls of 64 tokens and more are one size
WINDOW = 0.1  # seconds over which processors are counted, at least
MISSING = 0.25  # of a processor: so much other work is not worth a thread less


def processor_ticks() -> tuple[int, int] | None:
    """Ticks of the clock since the machine's start, of all processors: while idle, and all (``proc_stat(5)``).

    None where the system does not say: elsewhere than on Linux. Takes 20 µs.
    """
    try:
        with open("/proc/stat", "rb") as file:
            ticks = [int(field) for field in file.readline().split()[1:9]]  # what follows is counted in these already
        return ticks[3] + ticks[4], sum(ticks)  # idle, and while waiting for a disk
    except (OSError, ValueError, IndexError):
        return None


class FreeProcessors:
    """How many processors other processes leave to this one: what was idle of late, and what this one has used.

    Args:
        ticks: see ``processor_ticks``.
        used: seconds of processors that this process has used.
        clock: seconds.
        count: all processors.
    """

    def __init__(
        self,
        ticks: Callable[[], tuple[int, int] | None] = processor_ticks,
        used: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
        count: int = os.cpu_count() or 1,
    ) -> None:
        self._ticks, self._used, self._clock, self._count = ticks, used, clock, count
        self._free = math.inf
        self._last = ticks(), used(), clock()

    def number(self) -> float:
        """Whole processors, at least one; counted again once ``WINDOW`` is over. Infinite where the system does not
        say."""
        (before, spent, since), now = self._last, self._clock()
        if before is None or now - since < WINDOW:
            return self._free
        ticks, used = self._ticks(), self._used()
        if ticks is not None and ticks[1] > before[1]:
            idle = self._count * (ticks[0] - before[0]) / (ticks[1] - before[1])
            self._free = max(1, math.floor(idle + (used - spent) / (now - since) + MISSING))
        self._last = ticks, used, now
        return self._free


class ThreadChoice:
    """The number of threads for calls of one size.

    Args:
        most: threads, at least one. The others are its half, the half of that, and so on.
    """

    def __init__(self, most: int) -> None:
        self._counts = [most]
        while self._counts[-1] > 1:
            self._counts.append(self._counts[-1] // 2)
        self._home = 0  # place of the count that is used
        self._seconds: dict[int, float] = {}  # a token, by place
        self._calls = 0  # since the last trial
        self._gap = self._due = LEAST  # calls between trials; calls till the next one
        self._usual = 0.0  # what a token took after the last trial
        self._trial: int | None = None  # place of the count that is tried
        self._tried: list[float] = []
        self._step = 1  # from the place that is used to the one that is tried next

    @property
    def count(self) -> int:
        """Threads of the next call."""
        return self._counts[self._home if self._trial is None else self._trial]

    def observe(self, seconds: float) -> None:
        """The call took so long a token."""
        if self._trial is not None:
            self._tried.append(seconds)
            calls = LONG_TRIAL if self._trial < self._home else TRIAL
            if len(self._tried) == calls or seconds > HOPELESS * self._seconds[self._home]:
                self._judge(self._trial)
            return
        self._calls += 1
        mean = self._seconds.get(self._home)
        is_settled = mean is not None and self._calls > 2  # the first calls do what is done once
        self._seconds[self._home] = now = mean + WEIGHT * (seconds - mean) if mean and is_settled else seconds
        if self._calls == 2 or not self._usual:
            self._usual = now
        neighbours = [
            self._home + step for step in (self._step, -self._step) if 0 <= self._home + step < len(self._counts)
        ]
        if not neighbours:
            return
        better = min(neighbours, key=lambda index: self._seconds.get(index, now))
        if self._seconds.get(better, now) < GAIN * now:
            self._try(better)
        elif self._calls >= LEAST and now > SLOW * self._usual:
            self._gap = LEAST
            self._try(neighbours[0])
        elif self._calls >= self._due:
            self._try(neighbours[0])

    def _try(self, index: int) -> None:
        self._trial, self._tried = index, []

    def _judge(self, index: int) -> None:
        """End a trial. What was tried is known anew, whichever is used: more threads by their mean, since what they
        meet among other work are pauses; fewer by the best call, the first has caches to fill."""
        self._seconds[index] = sum(self._tried) / len(self._tried) if index < self._home else min(self._tried)
        step, self._step = index - self._home, self._home - index
        self._gap = self._due = min(MOST, 2 * self._gap)
        if self._seconds[index] < GAIN * self._seconds[self._home]:
            self._home = index
            self._gap = self._due = max(LEAST, self._gap // DOUBT)
            if 0 <= index + step < len(self._counts):  # further that way
                self._step, self._due = step, LEAST
        self._trial, self._calls, self._usual = None, 0, 0.0


class TimedContext:
    """A ``LlamaContext`` whose calls have as many threads as pay.

    Args:
        context: nothing else may use it.
        most: threads of a call.
        clock: seconds.
        free: processors that there are for them.
    """

    def __init__(
        self,
        context: LlamaContext,
        most: int,
        clock: Callable[[], float] = time.perf_counter,
        free: FreeProcessors | None = None,
    ) -> None:
        self._context, self._most = context, most
        self._free = free or FreeProcessors()
        self._choices: dict[int, ThreadChoice] = {}
        self._threads = most
        self._clock = clock

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[bool],
    ) -> npt.NDArray[np.float32]:
        """See ``LlamaContext.decode``."""
        size = min(LARGEST, len(tokens).bit_length())
        choice = self._choices.get(size)
        if choice is None:
            choice = self._choices[size] = ThreadChoice(self._most)
        count = int(min(choice.count, self._free.number()))
        if count != self._threads:
            self._threads = count
            self._context.use_threads(count)
        start = self._clock()
        logits = self._context.decode(tokens, positions, sequences, wanted)
        if count == choice.count:  # else the choice waits for the processors that it had
            choice.observe((self._clock() - start) / len(tokens))
        return logits

    def use_threads(self, count: int) -> None:
        """See ``LlamaContext.use_threads``: the most that calls may have from now on."""
        self._most, self._choices = count, {}

    def copy(self, source: int, target: int, start: int = 0, end: int = -1) -> None:
        """See ``LlamaContext.copy``."""
        self._context.copy(source, target, start, end)

    def remove(self, sequence: int, start: int) -> None:
        """See ``LlamaContext.remove``."""
        self._context.remove(sequence, start)
