"""Threads beside the loop for what may take long: a sequence whose mask is late waits alone, and the others go on.

What is to be done for a sequence between two calls of the model (take a token, see what must follow, make the next
mask) is a ``Task``. The tasks of a step run one after the other in one thread, the *lane*, and the loop waits for them,
so all is as if it did them itself. A task that takes longer than ``patience`` is *late*: the loop goes on without it,
and what stands after it moves to a new lane. Sequences that were late lately have threads of their own, and nobody
waits for them. Kernels release the GIL. A task that holds it slows the loop down, but does not stop it: how much says
the interpreter's switch interval, which belongs to whoever owns the process (the server lowers its own).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from structgen.generation.decoding.output import Output

PROBATION = 16  # tasks in time, at most, after which a sequence that was late is waited for again
SLOW_THREADS = 4


class Task:
    """Something that is done for one output; while it is, nothing else may touch the output.

    Attributes:
        output: it.
        error: what it raised.
        seconds: how long it took, once it is done.
        started: when it was begun (``time.monotonic``); None: not yet.
        is_done: whether it is; written last.
    """

    __slots__ = ("_act", "error", "is_done", "output", "seconds", "started")

    def __init__(self, output: Output, act: Callable[[], None]) -> None:
        self.output, self._act = output, act
        self.error: Exception | None = None
        self.started: float | None = None
        self.seconds = 0.0
        self.is_done = False

    def run(self) -> None:
        """Do it."""
        self.started = time.monotonic()
        try:
            self._act()
        except Exception as error:
            self.error = error
        self.seconds = time.monotonic() - self.started
        self.is_done = True


class _Lane:
    """Tasks that one thread does one after the other, until the loop moves on from it."""

    def __init__(self, changed: threading.Event) -> None:
        self.lock, self._changed = threading.Lock(), changed
        self.tasks: deque[Task] = deque()
        self.current: Task | None = None
        self.is_left = False
        self.is_empty = threading.Event()
        self.wanted = threading.Semaphore(0)
        threading.Thread(target=self._run, name="structgen-lane", daemon=True).start()

    def give(self, tasks: Sequence[Task]) -> None:
        """Have these done."""
        self.tasks.extend(tasks)
        self.is_empty.clear()
        self.wanted.release()

    def leave(self) -> list[Task]:
        """End the thread after what it does now (``current``); what is left to be done."""
        with self.lock:
            self.is_left = True
            left = list(self.tasks)
            self.tasks.clear()
        self.wanted.release()
        return left

    def _run(self) -> None:
        while True:
            self.wanted.acquire()
            while True:
                with self.lock:
                    if self.is_left:
                        self._changed.set()
                        return
                    self.current = self.tasks.popleft() if self.tasks else None
                if self.current is None:
                    break
                self.current.run()
            self.is_empty.set()


class TaskThreads:
    """Does tasks beside the loop; used by the loop's thread alone. Its threads end when ``idle`` is called.

    Args:
        patience: seconds that the loop waits for a task.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._lane: _Lane | None = None
        self._slow: SimpleQueue[Task | None] = SimpleQueue()
        self._slow_threads = 0
        self._unfinished: list[Task] = []
        self._changed = threading.Event()

    def run(self, tasks: Sequence[Task]) -> None:
        """Do these and wait for them, but for none longer than ``patience``: those are not done when this returns."""
        if not tasks:
            return
        self._lane = self._lane or _Lane(self._changed)
        self._lane.give(tasks)
        while not self._lane.is_empty.wait(self._left(self._lane.current)):
            current = self._lane.current
            if current is None or current.is_done or self._left(current) > 0:
                continue
            left = self._lane.leave()
            if self._lane.current is not None:
                self._late(self._lane.current)
            self._lane = _Lane(self._changed)
            self._lane.give(left)

    def begin(self, task: Task) -> None:
        """Do this; nobody waits for it."""
        if self._slow_threads < SLOW_THREADS:
            self._slow_threads += 1
            threading.Thread(target=self._work, args=(self._slow,), name="structgen-late", daemon=True).start()
        self._late(task)
        self._slow.put(task)

    def finished(self) -> None:
        """Look which late tasks are done."""
        self._changed.clear()
        self._unfinished = [task for task in self._unfinished if not task.is_done]

    def wait(self, seconds: float) -> None:
        """Until a late task is done, at most so long."""
        self._changed.wait(seconds)

    def idle(self) -> None:
        """End all threads that have nothing to do; the others end after what they do."""
        if self._lane is not None:
            self._lane.leave()
            self._lane = None
        for _ in range(self._slow_threads):
            self._slow.put(None)
        self._slow, self._slow_threads = SimpleQueue(), 0
        self._unfinished.clear()  # those that were given up: nobody waits beside them now
        self.finished()

    def _left(self, task: Task | None) -> float:
        """How long a task may still take."""
        if task is None or task.started is None:
            return self._patience
        return max(0.0, task.started + self._patience - time.monotonic())

    def _late(self, task: Task) -> None:
        self._unfinished.append(task)

    def _work(self, tasks: SimpleQueue[Task | None]) -> None:
        while (task := tasks.get()) is not None:
            task.run()
            self._changed.set()
